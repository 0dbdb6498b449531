//! Growth or decline from season to season.

use crate::baseline::sample::Round;

/// A log-linear trend: the rate of a round was exp(`alpha` − `growth`·ago).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// The logarithm of the growth in one season.
    pub(crate) growth: f64,
    /// The rate now.
    pub(crate) now: f64,
    /// What its uncertainty adds to the variance now, in parts of it.
    pub(crate) uncertainty: f64,
}

/// A trend must have a probability of at most 1 in 100 where there is none.
const SIGNIFICANT: f64 = 6.63;
/// The fewest seasons that show one.
const FEWEST: usize = 5;
/// How far beyond the rates of the seasons themselves the rate now may be.
const BEYOND: f64 = 1.5;

/// The trend of the rounds, where it is significant against the given dispersion.
pub(crate) fn trend(rounds: &[Round], rate: f64, dispersion: f64) -> Option<Trend> {
    if rounds.len() < FEWEST {
        return None;
    }
    let (mut whole, mut time) = (0.0, 0.0);
    for round in rounds {
        let weight = round.whole;
        whole += weight;
        time -= weight * round.ago;
    }
    let centre = time / whole;
    let (mut score, mut information) = (0.0, 0.0);
    for round in rounds {
        let (part, whole) = (round.part, round.whole);
        let distance = -round.ago - centre;
        score += distance * (part - rate * whole);
        information += distance * distance * rate * whole;
    }
    let is_significant =
        information > 0.0 && score * score > SIGNIFICANT * dispersion * information;
    is_significant.then(|| {
        fitted(
            rounds,
            centre,
            score / information,
            rate * whole / information,
        )
    })
}

/// The trend by Newton's method, from a first guess on.
fn fitted(rounds: &[Round], centre: f64, guess: f64, relative: f64) -> Trend {
    let mut growth = guess.clamp(-1.0, 1.0);
    let mut at_centre = 0.0;
    for _ in 0..6 {
        let (mut parts, mut sums) = (0.0, [0.0; 3]);
        let mut moment = 0.0;
        for round in rounds {
            let (part, whole) = (round.part, round.whole);
            let distance = -round.ago - centre;
            let weight = whole * libm::exp(growth * distance);
            parts += part;
            moment += part * distance;
            sums[0] += weight;
            sums[1] += weight * distance;
            sums[2] += weight * distance * distance;
        }
        at_centre = parts / sums[0];
        let mean = sums[1] / sums[0];
        let variance = sums[2] / sums[0] - mean * mean;
        if !(parts > 0.0 && variance > 0.0) {
            break;
        }
        growth = (growth + (moment / parts - mean) / variance).clamp(-1.0, 1.0);
    }
    let now = at_centre * libm::exp(-growth * centre);
    Trend {
        growth,
        now: within(rounds, now),
        uncertainty: centre * centre * relative / rounds.len() as f64,
    }
}

/// Not far beyond the rates of the rounds.
fn within(rounds: &[Round], rate: f64) -> f64 {
    let rates = rounds
        .iter()
        .filter(|round| round.whole > 0.0)
        .map(|round| round.part / round.whole);
    let (lowest, highest) = rates.fold((f64::MAX, 0.0_f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    rate.max(lowest.min(highest) / BEYOND).min(highest * BEYOND)
}
