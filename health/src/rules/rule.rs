//! A rule as it was read.

use std::collections::BTreeMap;

use tallyfold::text::Fraction;
use tallyfold::{Dimension, Metric, TimeStep};

use super::names::{RuleKind, Severity, Side};
use crate::measure::Measure;

/// Seconds of a week.
pub(crate) const WEEK: u64 = 7 * 86_400;

/// How long a first check looks back, in seconds.
pub(crate) const FIRST_LOOK: u64 = 86_400;

/// How long a group is new, in seconds.
pub(crate) const NEW_FOR: u64 = 86_400;

/// How much a stream varies is learned window after window. Learning restarts after each period of this length, in
/// seconds counted from 1970, so that a check of one window and a replay of many give the same levels.
pub(crate) const ANEW: u64 = WEEK;

/// How many seconds before the first judged window of such a period are learned from.
pub(crate) const WARM_UP: u64 = 2 * 86_400;

/// How long a silence is added up, in seconds.
pub(crate) const LONGEST_SILENCE: u64 = 86_400;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The name, which findings carry; it is unique.
    pub(crate) name: String,
    /// What it looks for.
    pub(crate) kind: RuleKind,
    /// The endpoint whose counts are judged.
    pub(crate) metric: Metric,
    /// The number that is made from the counts.
    pub(crate) measure: Measure,
    /// The dimensions to group by. Each group is judged by itself; without dimensions, all events are one group.
    pub(crate) by: Vec<Dimension>,
    /// The values to keep, for each dimension that is named. Other events do not count.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
    /// The length of the windows that are judged.
    pub(crate) window: TimeStep,
    /// After how many bad windows in a row it fires.
    pub(crate) bad: u32,
    /// After how many good windows in a row it is resolved.
    pub(crate) good: u32,
    /// How severe its findings are.
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
    /// By comparison with earlier weeks.
    Baseline(Baseline),
    /// No event where the baseline expects some.
    Silent(Baseline),
    /// No event in the last period, but events in each earlier period of the same length.
    Vanished {
        /// The length of a period.
        over: u64,
        /// How far back.
        history: u64,
    },
    /// Events in a group that had none in the history before.
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
    /// Which deviations are bad.
    pub(crate) side: Side,
    /// How many false alarms in 30 days, if counts go on as before.
    pub(crate) false_alarms: f64,
    /// The smallest change that matters: of a count, the share of what is expected; of a share, the difference.
    pub(crate) change: Fraction,
    /// Over how many seconds small deviations are added up; `None` if they are not.
    pub(crate) slow: Option<u64>,
}

/// A speed at which a budget is used up too fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burn {
    /// How many times as fast as the budget allows.
    pub(crate) rate: Fraction,
    /// The longer window, in seconds.
    pub(crate) long: u64,
    /// The shorter window, in seconds, which shows that the errors still go on.
    pub(crate) short: u64,
    /// The severity, if it is not that of the rule.
    pub(crate) severity: Option<Severity>,
}

impl Baseline {
    /// How many seconds of history the level of a window needs. This includes the history of the earlier levels, which
    /// show how much the stream varies.
    fn history(&self, window: u64) -> u64 {
        let neighbours = self.neighbours as u64 * window;
        self.weeks as u64 * WEEK + neighbours + WARM_UP + ANEW
    }
}

impl Rule {
    /// How many seconds before a judged window are read. Older counts have no effect.
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

    /// How many seconds before now are read: the windows that a first check judges, and their history.
    pub(crate) fn back(&self) -> u64 {
        let window = u64::from(self.window.seconds());
        let windows = u64::from(self.bad) + u64::from(self.good) + 2;
        self.history() + (windows * window).max(FIRST_LOOK)
    }
}
