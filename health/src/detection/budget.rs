//! How fast an error budget is spent.

use crate::stats::tails::binomial;

/// A burn rate that is too high when two ranges, a long and a short one, both reach it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burn {
    /// How many times faster than allowed the budget is spent.
    pub factor: f64,
    /// Length of the long range, in seconds.
    pub long_s: u64,
    /// Length of the short range, in seconds, which ends the alarm soon after the errors end.
    pub short_s: u64,
}

/// The burn rates that are watched: 14.4 times over 1 hour and 5 minutes, 6 times over 6 hours and 30 minutes, once over 3 days
/// and 6 hours. (Google, The Site Reliability Workbook, chapter 5.)
pub const BURNS: [Burn; 3] = [
    Burn {
        factor: 14.4,
        long_s: 3_600,
        short_s: 300,
    },
    Burn {
        factor: 6.0,
        long_s: 21_600,
        short_s: 1_800,
    },
    Burn {
        factor: 1.0,
        long_s: 259_200,
        short_s: 21_600,
    },
];

/// The errors and the attempts of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Events that failed.
    pub part: u64,
    /// Events that were attempted.
    pub whole: u64,
}

impl Spent {
    /// How many times faster than allowed the budget (the share of attempts that may fail) is spent.
    #[must_use]
    pub fn burn_rate(&self, budget: f64) -> f64 {
        if self.whole == 0 {
            return 0.0;
        }
        (self.part as f64 / self.whole as f64 / budget.clamp(1e-12, 1.0)).min(1e12)
    }

    /// The natural logarithm of the probability of at least this many errors where the budget is just kept.
    #[must_use]
    pub fn ln_p(&self, budget: f64) -> f64 {
        binomial(self.part, self.whole, budget).high
    }
}

/// Whether a budget is spent too fast: both ranges spend it at least `factor` times as fast as allowed, and in both so
/// many errors would have a probability of at most e^`ln_p` if the budget were kept.
#[must_use]
pub fn burns(long: Spent, short: Spent, budget: f64, factor: f64, ln_p: f64) -> bool {
    [long, short]
        .iter()
        .all(|range| range.burn_rate(budget) >= factor && range.ln_p(budget) <= ln_p)
}
