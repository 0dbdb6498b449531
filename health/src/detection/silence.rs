//! Streams that ended.

use crate::baseline::level::Level;
use crate::stats::deviance::amount;
use crate::stats::mass;
use crate::stats::tails::poisson;

/// The natural logarithm of the probability that a volume of this level is 0. Those of adjacent windows are added.
#[must_use]
pub fn ln_silence(level: &Level) -> f64 {
    let excess = amount(level.dispersion - 1.0);
    if excess == 0.0 {
        return poisson(0, level.expected).low;
    }
    mass::negative_binomial(0.0, amount(level.expected), excess)
}
