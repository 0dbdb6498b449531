//! An accumulating test, which finds changes that are too small for a single window.

use serde::{Deserialize, Serialize};

use crate::baseline::stream::Level;
use crate::stats::mass::amount;

/// Which change to look for, and how rare false alarms must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The level in a decline that matters, as a multiple of the expected one; below 1.
    pub fall: f64,
    /// The level in a rise that matters, as a multiple of the expected one; above 1.
    pub rise: f64,
    /// The fewest windows, on average, between two false alarms of one side.
    pub run_length: f64,
}

impl Default for Drift {
    /// A decline by a fifth or a rise by a quarter, and at most one false alarm in 100,000 windows.
    fn default() -> Self {
        Self {
            fall: 0.8,
            rise: 1.25,
            run_length: 100_000.0,
        }
    }
}

impl Drift {
    /// The score at which a drift is reported. The mean run length between false alarms of a test that accumulates
    /// likelihood ratios is at least e to the power of the limit (Lorden 1971), so the stated run length holds.
    #[must_use]
    pub fn limit(&self) -> f64 {
        libm::log(amount(self.run_length).max(1.0))
    }
}

/// The accumulated evidence of a decline and of a rise: a CUSUM of negative binomial likelihood ratios (Höhle and Paul 2008).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cusum {
    /// The log likelihood ratio in favour of a decline; 0 and more.
    pub falling: f64,
    /// The log likelihood ratio in favour of a rise; 0 and more.
    pub rising: f64,
    /// How many windows ago the decline began, if there is one.
    pub falling_for: u64,
    /// How many windows ago the rise began, if there is one.
    pub rising_for: u64,
}

impl Cusum {
    /// The scores after one more window. A score is capped at twice the limit, so that it falls soon after the
    /// counts are normal again.
    #[must_use]
    pub fn step(self, part: u64, whole: Option<u64>, level: &Level, drift: &Drift) -> Self {
        let most = 2.0 * drift.limit();
        let next = |score: f64, ratio: f64| {
            (amount(score) + evidence(part, whole, level, ratio)).clamp(0.0, most)
        };
        let falling = next(self.falling, drift.fall);
        let rising = next(self.rising, drift.rise);
        let length = |score: f64, before: u64| {
            if score > 0.0 {
                before.saturating_add(1)
            } else {
                0
            }
        };
        Self {
            falling,
            rising,
            falling_for: length(falling, self.falling_for),
            rising_for: length(rising, self.rising_for),
        }
    }
}

/// The log of how much more probable the count is if the level is `ratio` times the expected one.
fn evidence(part: u64, whole: Option<u64>, level: &Level, ratio: f64) -> f64 {
    let (x, ratio) = (part as f64, amount(ratio).max(1e-6));
    let dispersion = amount(level.dispersion).max(1.0);
    if let Some(whole) = whole {
        let p = amount(level.expected).clamp(1e-12, 1.0 - 1e-12);
        let changed = (p * ratio).min(1.0 - 1e-12);
        let rest = (whole as f64 - x).max(0.0);
        return (x * libm::log(changed / p) + rest * (libm::log1p(-changed) - libm::log1p(-p)))
            / dispersion;
    }
    let (mean, excess) = (amount(level.expected), dispersion - 1.0);
    if excess < 1e-9 {
        return x * libm::log(ratio) - mean * (ratio - 1.0);
    }
    x * libm::log(ratio) - (x + mean / excess) * libm::log1p((ratio - 1.0) * excess / dispersion)
}
