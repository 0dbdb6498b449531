//! A window of a group that is not as it should be.

use crate::cause::explanation::Amount;
use crate::rules::names::Severity;

/// A window of a group that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Odd {
    /// Which group.
    pub(crate) group: u32,
    /// Which slot.
    pub(crate) slot: u32,
    /// How many slots up to this one were judged together; at least 1.
    pub(crate) slots: u32,
    /// How many slots it has lasted, this one included; at least 1.
    pub(crate) run: u32,
    /// Whether it is bad enough to begin a finding. Otherwise it only keeps one from ending.
    pub(crate) fires: bool,
    /// Whether a finding fires with this window alone, however many windows the rule asks for.
    pub(crate) at_once: bool,
    /// The severity, if it is another than that of the rule.
    pub(crate) severity: Option<Severity>,
    /// What was counted.
    pub(crate) observed: Amount,
    /// What was expected of the part.
    pub(crate) expected: f64,
    /// The natural logarithm of its probability, if it was judged by one.
    pub(crate) ln_p: Option<f64>,
    /// What would be normal.
    pub(crate) normal: Normal,
}

/// What would be normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Normal {
    /// The fewest and the most events of the part.
    Range(u64, u64),
    /// All counts that have at least this probability (as a logarithm) at this level: an expected count or, for a rate,
    /// an expected share, and how many times the variance is that of a Poisson or binomial count.
    Likely {
        /// The level.
        expected: f64,
        /// The dispersion.
        dispersion: f64,
        /// The limit.
        ln_p: f64,
    },
}
