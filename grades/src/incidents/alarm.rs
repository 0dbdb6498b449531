//! Alarms: findings from the moment when they fire.

use tallyfold::Dimension;
use tallyfold_health::Finding;

/// Attributes and values.
pub(super) type Values = Vec<(String, String)>;

/// A finding from when it fired until it no longer did.
#[derive(Clone, Debug)]
pub(super) struct Alarm {
    pub(super) rule: String,
    pub(super) group: Values,
    /// What explains it, as it was first told: parts of its group, and all of it.
    pub(super) causes: Vec<Values>,
    /// The window that made it fire.
    pub(super) first: usize,
    /// The last window in which it fired.
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
            group,
            first,
            last,
            told,
            sentence: finding.sentence.clone(),
        }
    }

    /// Whether it may be about the same events as another group: no attribute has different values in both.
    pub(super) fn may_be_about(&self, values: &[(&str, &str)]) -> bool {
        let differs = |(name, value): &(String, String)| {
            values
                .iter()
                .any(|(other, wanted)| other == name && wanted != value)
        };
        !self.group.iter().any(differs)
    }
}
