//! Alarms: what a detector reports, from the moment when it does until it reports that it is over.

use tallyfold::{Dimension, Metric};
use tallyfold_health::{Finding, Measure, Severity};

/// Attributes and values.
pub(super) type Values = Vec<(String, String)>;

/// A finding from when it fired until it no longer did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alarm {
    pub(super) rule: String,
    /// Which number is unusual, of which endpoint, what it was, and what was expected: events, also of a share.
    pub(super) measure: Measure,
    pub(super) metric: Metric,
    pub(super) observed: f64,
    pub(super) expected: f64,
    /// Whether it only informs, and wakes nobody.
    pub(super) is_info: bool,
    pub(super) group: Values,
    /// What explains it, as it was first told: parts of its group, and all of it.
    pub(super) causes: Vec<Values>,
    /// The window that made it fire.
    pub(super) first: usize,
    /// The last window in which it fired. It is called over from the end of this window.
    pub(super) last: usize,
    /// The last window that was over when the alarm was sent.
    pub(super) told: usize,
    pub(super) sentence: String,
}

impl Alarm {
    /// The alarm of a finding as it was when it fired first.
    pub(super) fn of(finding: &Finding, first: usize, last: usize, told: usize) -> Self {
        let pair = |(dimension, value): &(Dimension, String)| {
            (dimension.as_str().to_owned(), value.clone())
        };
        let group: Values = finding.group.iter().map(pair).collect();
        let causes = finding.causes.iter();
        let causes = causes.map(|cause| [&group[..], &cause.r#where].concat());
        Self {
            causes: causes.chain([group.clone()]).collect(),
            rule: finding.rule.clone(),
            measure: finding.measure,
            metric: finding.query.metric,
            observed: finding.observed.part as f64,
            expected: finding.expected,
            is_info: finding.severity < Severity::Warning,
            group,
            first,
            last,
            told,
            sentence: finding.sentence.clone(),
        }
    }
    /// Whether the number is too high.
    pub(super) fn is_high(&self) -> bool {
        self.observed >= self.expected
    }
}
