//! Computes how probable the count of a window, or a silence of several windows, is.

use crate::stats::mass::{self, amount};
use crate::stats::tails::{Tails, beta_binomial, negative_binomial, poisson};

/// The natural logarithm of about 100. A deviation is over when the observed counts are that many times more probable without
/// the deviation than with it.
pub(crate) const OVER: f64 = 4.6;

/// Apart from chance, adjacent windows deviate alike, so up to this many of them are only as much evidence as one independent
/// window.
pub(crate) const ALIKE: f64 = 4.0;

/// The expected count or share of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The expected count; for a rate, the expected share (0 to 1).
    pub expected: f64,
    /// The variance divided by the variance of a Poisson count (for a rate: of a binomial count); at least 1. It
    /// includes the uncertainty of the expectation itself.
    pub dispersion: f64,
}

/// Returns the tail probabilities of a count at a level. The distribution is negative binomial for a volume, and
/// beta-binomial for a rate, which has a `whole`.
#[must_use]
pub fn judge(part: u64, whole: Option<u64>, level: &Level) -> Tails {
    match whole {
        None => negative_binomial(part, level.expected, level.dispersion),
        Some(whole) => beta_binomial(part, whole, level.expected, level.dispersion),
    }
}

/// Returns the natural logarithm of the probability that a volume of this level is 0. For a silence of several windows,
/// add the logarithms of the windows.
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
    use super::{Level, judge, ln_silence};

    #[test]
    fn silence_is_the_probability_of_no_event() {
        let level = |dispersion| Level { expected: 3.0, dispersion };
        assert_eq!(ln_silence(&level(1.0)), -3.0);
        assert_eq!(ln_silence(&level(4.0)), judge(0, None, &level(4.0)).low);
        assert!(
            ln_silence(&level(4.0)) > -3.0,
            "events that arrive in batches leave more windows empty"
        );
    }
}
