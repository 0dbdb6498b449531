//! Silences: which findings are muted, and for how long.

use tallyfold::{Dimension, Timestamp};

/// A silence: findings that match are marked, not left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Silence {
    /// The names of the rules; all rules if this is empty.
    pub(crate) rules: Vec<String>,
    /// The values that a finding's group must have: one of the values listed for each dimension.
    pub(crate) group: Vec<(Dimension, Vec<String>)>,
    /// When it begins; `None` if it has always been in force.
    pub(crate) from: Option<Timestamp>,
    /// When it ends; `None` if it never does.
    pub(crate) until: Option<Timestamp>,
}

impl Silence {
    /// Whether a finding of a rule about a group is silenced at an instant.
    pub(crate) fn covers(&self, rule: &str, group: &[(Dimension, &str)], at: Timestamp) -> bool {
        let has = |(dimension, values): &(Dimension, Vec<String>)| {
            group
                .iter()
                .any(|(own, value)| own == dimension && values.iter().any(|wanted| wanted == value))
        };
        (self.rules.is_empty() || self.rules.iter().any(|name| name == rule))
            && self.group.iter().all(has)
            && self.from.is_none_or(|from| from <= at)
            && self.until.is_none_or(|until| at < until)
    }
}
