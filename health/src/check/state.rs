//! What one check leaves for the next.

use tallyfold::{Dimension, Timestamp, Window};

use crate::cause::explanation::Amount;
use crate::rules::names::Severity;

/// What one check leaves for the next: up to where each rule has judged, and what is pending or firing.
///
/// [`State::to_json`] and [`State::from_json`] keep it between checks. Its size grows only with the findings that are
/// pending or firing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Sorted by name.
    pub(crate) rules: Vec<RuleState>,
}

/// What a check leaves for one rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleState {
    /// The name of the rule.
    pub(crate) name: String,
    /// The end of the last window that was judged.
    pub(crate) judged: Timestamp,
    /// What is pending or firing, sorted by group.
    pub(crate) live: Vec<Live>,
}

/// A finding that is pending or firing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    /// The values of the rule's dimensions.
    pub(crate) group: Vec<(Dimension, String)>,
    /// How many bad windows it has had in a row, until it fired.
    pub(crate) bad: u32,
    /// How many good windows it has had in a row since.
    pub(crate) good: u32,
    /// The start of the first bad window.
    pub(crate) since: Timestamp,
    /// The end of the window with which it fired first; none while it is pending.
    pub(crate) fired: Option<Timestamp>,
    /// The numbers of the last bad window.
    pub(crate) numbers: Numbers,
}

/// The numbers of a bad window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    /// The window.
    pub(crate) window: Window,
    /// What was counted.
    pub(crate) observed: Amount,
    /// What was expected of the part.
    pub(crate) expected: f64,
    /// What would be normal of the part.
    pub(crate) normal: (u64, u64),
    /// The natural logarithm of its probability, if it was judged by one.
    pub(crate) ln_p: Option<f64>,
    /// How bad it is.
    pub(crate) severity: Severity,
}

impl State {
    /// Up to when each of the rules has judged. The next check needs the counts from there on, and what its rules look back on
    /// before that. None before the first check.
    #[must_use]
    pub fn judged(&self) -> Option<Timestamp> {
        self.rules.iter().map(|rule| rule.judged).min()
    }

    /// What is known of a rule.
    pub(crate) fn rule(&self, name: &str) -> Option<&RuleState> {
        self.rules.iter().find(|rule| rule.name == name)
    }
}
