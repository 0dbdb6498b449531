//! Runs contenders in turns. The machine's speed drifts, but within a round it is about the same for all contenders.

use std::time::Instant;

/// What each contender took, in seconds: by contender, then by round.
pub(crate) struct Times(Vec<Vec<f64>>);

/// In each round, runs each contender `repeats` times in a row. A first round warms up and is not
/// counted.
pub(crate) fn take_turns(rounds: usize, repeats: usize, contenders: &[&dyn Fn()]) -> Times {
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..repeats {
                contender();
            }
            let seconds = start.elapsed().as_secs_f64();
            if round > 0 {
                times.push(seconds / repeats as f64);
            }
        }
    }
    Times(times)
}

impl Times {
    /// The contender's median.
    pub(crate) fn median(&self, contender: usize) -> f64 {
        median(self.0[contender].clone())
    }

    /// The median over the rounds of the ratio of `numerator` to `denominator`.
    pub(crate) fn ratio(&self, numerator: usize, denominator: usize) -> f64 {
        let rounds = self.0[numerator].iter().zip(&self.0[denominator]);
        median(rounds.map(|(above, below)| above / below).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
