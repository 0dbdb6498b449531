//! Judges a window, or a silence of several windows, against the level.

use crate::baseline::stream::Level;
use crate::stats::mass;
use crate::stats::mass::amount;
use crate::stats::tails::{Tails, beta_binomial, negative_binomial, poisson};

/// The tail probabilities of a count under the level: negative binomial for a volume, beta-binomial for a rate, which
/// has a `whole`.
#[must_use]
pub fn judge(part: u64, whole: Option<u64>, level: &Level) -> Tails {
    match whole {
        None => negative_binomial(part, level.expected, level.dispersion),
        Some(whole) => beta_binomial(part, whole, level.expected, level.dispersion),
    }
}

/// Whether a window is certainly unremarkable: both its tails are above [`UNREMARKABLE`]. It is a hundred times faster
/// than [`judge`], so call it first if there are many windows. It returns false if it can't be certain.
#[must_use]
pub fn is_unremarkable(part: u64, whole: Option<u64>, level: &Level) -> bool {
    let dispersion = amount(level.dispersion).max(1.0);
    let (expected, absent, left) = match whole {
        None => (amount(level.expected), f64::INFINITY, 1.0),
        Some(whole) => {
            let share = amount(level.expected).min(1.0);
            (
                share * whole as f64,
                (1.0 - share) * whole as f64,
                1.0 - share,
            )
        }
    };
    let distance = part as f64 - expected;
    let (room, behind) = match distance < 0.0 {
        true => (expected, absent),
        false => (absent, expected),
    };
    if behind < 0.25 * (dispersion - 1.0) {
        // With so few expected events and such a dispersion, all events arrive in a few windows, and most windows have
        // none.
        return false;
    }
    let most = harmless(room / dispersion, dispersion);
    distance * distance <= most * dispersion * expected * left
}

/// The maximum squared distance, in variances, that certainly has a probability of at least 0.001. It shrinks with
/// `room`, the distance (in dispersions) between the expected count and the end of all counts. The bounds hold for the
/// gamma distribution of that shape, which is the limit for large dispersions, and for the Poisson distribution.
fn harmless(room: f64, dispersion: f64) -> f64 {
    if room <= 4.0 && dispersion <= 3.0 {
        // Even the last count is probable enough.
        return 4.0;
    }
    1.0 / (1.0 / 8.0 + 1.0 / room)
}

/// The natural logarithm of 0.001.
pub const UNREMARKABLE: f64 = -6.907_755_278_982_137;

/// Whether there are at least `minimum` events to judge by: those that came, or those that were expected.
#[must_use]
pub fn is_enough(part: u64, whole: Option<u64>, level: &Level, minimum: u64) -> bool {
    let expected = whole.map_or(1.0, |whole| whole as f64) * level.expected;
    part >= minimum || expected >= minimum as f64
}

/// The natural logarithm of the probability that a volume of this level is 0. The logarithms of adjacent windows are
/// added.
#[must_use]
pub fn ln_silence(level: &Level) -> f64 {
    let excess = amount(level.dispersion - 1.0);
    if excess == 0.0 {
        return poisson(0, level.expected).low;
    }
    mass::negative_binomial(0.0, amount(level.expected), excess)
}

#[cfg(test)]
mod tests {
    use super::{UNREMARKABLE, is_unremarkable, judge};
    use crate::baseline::stream::Basis;
    use crate::baseline::stream::Level;

    fn level(expected: f64, dispersion: f64) -> Level {
        Level {
            expected,
            dispersion,
            basis: Basis::Season,
            used: 18,
        }
    }

    /// Every count that is called unremarkable, for means and dispersions of all sizes.
    #[test]
    fn unremarkable_counts_have_probable_tails() {
        let mut lowest = 0.0_f64;
        let mut seen = 0;
        for dispersion in [1.0, 1.2, 2.0, 3.1, 7.0, 50.0, 900.0, 5_000.0, 1e5] {
            for step in 0..120 {
                let mean = 0.01 * libm::pow(1.2, f64::from(step));
                let level = level(mean, dispersion);
                let deviation = libm::sqrt(mean * dispersion);
                let ends = [mean - 3.0 * deviation, mean + 3.0 * deviation].map(|end| end as u64);
                let stride = ((ends[1] - ends[0]) / 200).max(1) as usize;
                for part in (ends[0]..=ends[1])
                    .step_by(stride)
                    .filter(|part| is_unremarkable(*part, None, &level))
                {
                    let tails = judge(part, None, &level);
                    lowest = lowest.min(tails.low).min(tails.high);
                    seen += 1;
                }
            }
        }
        assert!(
            seen > 20_000 && lowest > UNREMARKABLE,
            "{seen} counts, the least probable e^{lowest}"
        );
    }

    #[test]
    fn unremarkable_shares_have_probable_tails() {
        let mut lowest = 0.0_f64;
        let mut seen = 0;
        for whole in [1, 2, 5, 17, 60, 400, 1_100, 3_000] {
            for dispersion in [1.0, 1.5, 3.0, 6.0, 40.0, 300.0] {
                for share in [0.0001, 0.003, 0.02, 0.2, 0.5, 0.9, 0.99, 0.9995, 0.99999] {
                    let level = level(share, dispersion);
                    for part in
                        (0..=whole).filter(|part| is_unremarkable(*part, Some(whole), &level))
                    {
                        let tails = judge(part, Some(whole), &level);
                        lowest = lowest.min(tails.low).min(tails.high);
                        seen += 1;
                    }
                }
            }
        }
        assert!(
            seen > 4_000 && lowest > UNREMARKABLE,
            "{seen} counts, the least probable e^{lowest}"
        );
    }
}
