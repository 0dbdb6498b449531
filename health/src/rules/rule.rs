//! A rule as it was read.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Metric, TimeStep};

use super::names::{RuleKind, Severity, Side};
use super::number::Fraction;
use crate::measure::Measure;

/// Seconds of a week.
pub(crate) const WEEK: u64 = 7 * 86_400;

/// How long a first check looks back, in seconds.
pub(crate) const FIRST_LOOK: u64 = 86_400;

/// How long a group is new, in seconds.
pub(crate) const NEW_FOR: u64 = 86_400;

/// How much a stream varies is learned window after window. This begins anew so often, in seconds counted from 1970, so that a
/// check of one window and a replay of many expect the same.
pub(crate) const ANEW: u64 = WEEK;

/// Before the first window that is judged after such a beginning, so many seconds are learned from.
pub(crate) const WARM_UP: u64 = 2 * 86_400;

/// How long a silence is added up, in seconds.
pub(crate) const LONGEST_SILENCE: u64 = 86_400;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// What findings are called by; no two rules have the same.
    pub(crate) name: String,
    /// What it looks for.
    pub(crate) kind: RuleKind,
    /// Which counts.
    pub(crate) metric: Metric,
    /// What is made of them.
    pub(crate) measure: Measure,
    /// The dimensions by whose values groups are judged one by one; without any, all events are one group.
    pub(crate) by: Vec<Dimension>,
    /// The only values that count, for each dimension that is named.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
    /// The length of the windows that are judged.
    pub(crate) window: TimeStep,
    /// After how many bad windows in a row it fires.
    pub(crate) bad: u32,
    /// After how many good windows in a row it is resolved.
    pub(crate) good: u32,
    /// How bad that is.
    pub(crate) severity: Severity,
    /// The fewest events that are judged.
    pub(crate) least: u64,
    /// Labels for its findings.
    pub(crate) labels: BTreeMap<String, String>,
    /// How a window is judged.
    pub(crate) test: Test,
}

/// How a window is judged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// By fixed limits.
    Limits(Limits),
    /// By earlier weeks.
    Baseline(Baseline),
    /// No event where the baseline expects some.
    Silent(Baseline),
    /// No event for so many seconds, but in each period of that length in all seconds before.
    Vanished {
        /// The length of a period.
        over: u64,
        /// How far back.
        history: u64,
    },
    /// Events, and none in so many seconds before.
    New {
        /// How far back.
        history: u64,
    },
    /// A share of errors that may be used up.
    Budget {
        /// The share.
        budget: Fraction,
        /// How fast is too fast.
        burns: Vec<Burn>,
    },
    /// By the counts of ingestion.
    Undelivered,
    /// By the totals that the service reported.
    Reconciliation,
}

/// Fixed limits. A limit of a count is a fraction of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// More is bad.
    pub(crate) above: Option<Fraction>,
    /// While it fires, more than this stays bad.
    pub(crate) clear_below: Option<Fraction>,
    /// Less is bad.
    pub(crate) below: Option<Fraction>,
    /// While it fires, less than this stays bad.
    pub(crate) clear_above: Option<Fraction>,
}

/// What earlier weeks say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Baseline {
    /// How many weeks.
    pub(crate) weeks: usize,
    /// How many neighbours of the same window of the week, on each side.
    pub(crate) neighbours: usize,
    /// Which deviations count.
    pub(crate) side: Side,
    /// How many false alarms in 30 days, if counts go on as before.
    pub(crate) false_alarms: f64,
    /// The smallest change that matters: of a count, the share of what is expected; of a share, the difference.
    pub(crate) change: Fraction,
    /// Over how many seconds small deviations are accumulated; `None` for none.
    pub(crate) slow: Option<u64>,
}

/// A speed at which a budget is used up too fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burn {
    /// How many times as fast as the budget allows.
    pub(crate) rate: Fraction,
    /// The longer window, in seconds.
    pub(crate) long: u64,
    /// The shorter window, in seconds: that it still goes on.
    pub(crate) short: u64,
    /// How bad that is, if not as the rule says.
    pub(crate) severity: Option<Severity>,
}

impl Baseline {
    /// How many seconds before a window its level is learned from, with what the levels before it are learned from that say how
    /// much the stream varies.
    fn history(&self, window: u64) -> u64 {
        let neighbours = self.neighbours as u64 * window;
        self.weeks as u64 * WEEK + neighbours + WARM_UP + ANEW
    }
}

impl Rule {
    /// How many seconds before a judged window are looked at. What is older changes nothing.
    pub(crate) fn history(&self) -> u64 {
        let window = u64::from(self.window.seconds());
        match &self.test {
            Test::Limits(_) | Test::Undelivered | Test::Reconciliation => 0,
            Test::Baseline(baseline) => {
                baseline.history(window) + 2 * baseline.slow.unwrap_or_default()
            }
            Test::Silent(baseline) => baseline.history(window) + LONGEST_SILENCE,
            Test::Vanished { over, history } => over + history,
            Test::New { history } => history + NEW_FOR,
            Test::Budget { burns, .. } => {
                let longest = burns.iter().map(|burn| burn.long.max(burn.short)).max();
                longest.unwrap_or_default()
            }
        }
    }

    /// How many seconds before now are looked at: windows that a first check judges, and what is before them.
    pub(crate) fn back(&self) -> u64 {
        let window = u64::from(self.window.seconds());
        let windows = u64::from(self.bad) + u64::from(self.good) + 2;
        self.history() + (windows * window).max(FIRST_LOOK)
    }
}
