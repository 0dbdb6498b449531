//! Which events a finding is about, and what two findings have in common.

use tallyfold::Dimension;

/// The values of the events that a finding is about: its group, and the cause that explains most of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) group: &'a [(Dimension, String)],
    pub(super) cause: &'a [(String, String)],
}

impl<'a> Place<'a> {
    fn group(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.group.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn all(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let cause = self.cause.iter();
        self.group()
            .chain(cause.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    pub(super) fn is_everything(self) -> bool {
        self.group.is_empty() && self.cause.is_empty()
    }
}

/// Returns whether the group of the wider place contains the narrower place.
pub(super) fn is_inside(narrow: Place<'_>, wide: Place<'_>) -> bool {
    wide.group()
        .all(|pair| narrow.all().any(|other| other == pair))
}

/// Returns whether the groups of two places have no dimension with different values.
pub(super) fn is_compatible(one: Place<'_>, other: Place<'_>) -> bool {
    let differs = |(name, value): (&str, &str)| {
        other
            .group()
            .any(|(same, different)| same == name && different != value)
    };
    !one.group().any(differs)
}

/// Returns how many values two places have in common, including the values of their causes.
pub(super) fn common(one: Place<'_>, other: Place<'_>) -> usize {
    one.all()
        .filter(|pair| other.all().any(|same| same == *pair))
        .count()
}
