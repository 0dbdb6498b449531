//! The windows that a level is learned from.

use crate::baseline::prepared::Prepared;

/// The windows that a level is learned from, in rounds: one for each season.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) rounds: Vec<Round>,
    /// How many windows there are.
    pub(crate) windows: usize,
    /// What is expected at each offset from the slot, in parts of what is expected at the slot, and its power of 2/3.
    pub(crate) factors: Vec<(f64, f64)>,
    /// The offset of the slot itself.
    pub(crate) centre: usize,
}

/// Adjacent windows around the slot, in one season.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// How many seasons ago.
    pub(crate) ago: f64,
    /// The first window, and how many there are.
    pub(crate) first: usize,
    pub(crate) length: usize,
    /// The offset of the first one.
    pub(crate) offset: usize,
    /// Their parts and wholes in all; later, weighted.
    pub(crate) part: f64,
    pub(crate) whole: f64,
}

impl Sample {
    /// Takes the windows around the slot of `at` in each of the `most` seasons before it.
    pub(crate) fn fill(
        &mut self,
        from: &Prepared,
        at: usize,
        period: usize,
        most: usize,
        neighbours: usize,
    ) {
        self.rounds.clear();
        self.windows = 0;
        let neighbours = neighbours.min(at);
        self.centre = neighbours;
        self.factors.clear();
        self.factors.resize(2 * neighbours + 1, (1.0, 1.0));
        for ago in 1..=most {
            let Some(slot) = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back))
            else {
                break;
            };
            let first = slot.saturating_sub(neighbours);
            let length = (slot + neighbours).min(at - 1) + 1 - first;
            self.take(
                from,
                Round {
                    ago: ago as f64,
                    first,
                    length,
                    offset: first + neighbours - slot,
                    part: 0.0,
                    whole: 0.0,
                },
            );
        }
    }

    fn take(&mut self, from: &Prepared, mut round: Round) {
        let mut windows = 0.0;
        for window in round.first..round.first + round.length {
            let teaches = from.teaches[window];
            windows += teaches;
            round.part += teaches * from.parts[window];
            round.whole += teaches * from.wholes[window];
        }
        if windows > 0.0 {
            self.windows += windows as usize;
            self.rounds.push(round);
        }
    }

    /// The mean whole of a window.
    pub(crate) fn mean_whole(&self) -> f64 {
        self.rounds.iter().map(|round| round.whole).sum::<f64>() / self.windows.max(1) as f64
    }
}
