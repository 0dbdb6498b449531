//! What the rules said: a finding from when it fired on.

use tallyfold_health::Finding;

/// Attributes and values.
pub(super) type Values = Vec<(String, String)>;

/// A finding from when it fired until it no longer did.
#[derive(Clone, Debug)]
pub(super) struct Alarm {
    pub(super) rule: String,
    pub(super) group: Values,
    /// What explains it, as it was first told.
    pub(super) causes: Vec<Values>,
    /// The window that made it fire.
    pub(super) first: usize,
    /// The last window in which it fired.
    pub(super) last: usize,
    /// The last window that was over when it was told.
    pub(super) told: usize,
    pub(super) sentence: String,
}

impl Alarm {
    /// The alarm of a finding as it was when it fired first.
    pub(super) fn of(finding: &Finding, first: usize, last: usize, told: usize) -> Self {
        let group = finding.group.iter();
        let group = group.map(|(dimension, value)| (dimension.as_str().to_owned(), value.clone()));
        let causes = finding.causes.iter();
        Self {
            rule: finding.rule.clone(),
            group: group.collect(),
            causes: causes.map(|cause| cause.r#where.clone()).collect(),
            first,
            last,
            told,
            sentence: finding.sentence.clone(),
        }
    }

    /// Whether it is about events that another group may have too: no attribute has two values.
    pub(super) fn may_be_about(&self, values: &[(&str, &str)]) -> bool {
        let differs = |(name, value): &(String, String)| {
            values
                .iter()
                .any(|(other, wanted)| other == name && wanted != value)
        };
        !self.group.iter().any(differs)
    }
}
