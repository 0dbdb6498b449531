//! One window against its level.

use crate::baseline::level::Level;
use crate::stats::tails::{Tails, beta_binomial, negative_binomial};

/// How probable a count this low, and one this high, is under the level: negative binomial for a volume, beta-binomial for a
/// rate, whose `whole` is given.
#[must_use]
pub fn judge(part: u64, whole: Option<u64>, level: &Level) -> Tails {
    match whole {
        None => negative_binomial(part, level.expected, level.dispersion),
        Some(whole) => beta_binomial(part, whole, level.expected, level.dispersion),
    }
}

/// Whether there are at least `minimum` events to judge by: those that came, or those that were expected.
#[must_use]
pub fn is_enough(part: u64, whole: Option<u64>, level: &Level, minimum: u64) -> bool {
    let expected = whole.map_or(1.0, |whole| whole as f64) * level.expected;
    part >= minimum || expected >= minimum as f64
}
