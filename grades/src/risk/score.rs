//! The quality of the named causes: exact sets, summed over all files.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use super::case::Values;

/// Counts of causes with one number of attributes, or of all causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    /// True causes that were named.
    pub(crate) hits: usize,
    /// Named, but not true.
    pub(crate) wrong: usize,
    /// True, but not named.
    pub(crate) missed: usize,
}

impl Score {
    /// Compares named and true causes. With a layer, only causes with this many attributes count.
    pub(crate) fn of(
        named: &BTreeSet<Values>,
        causes: &BTreeSet<Values>,
        layer: Option<usize>,
    ) -> Self {
        let counts = |values: &&Values| layer.is_none_or(|layer| values.len() == layer);
        Self {
            hits: named.intersection(causes).filter(counts).count(),
            wrong: named.difference(causes).filter(counts).count(),
            missed: causes.difference(named).filter(counts).count(),
        }
    }

    /// The harmonic mean of precision and recall; 1 if there was nothing to name and nothing was named.
    pub(crate) fn f1(self) -> f64 {
        share(2 * self.hits, 2 * self.hits + self.wrong + self.missed)
    }

    pub(crate) fn precision(self) -> f64 {
        share(self.hits, self.hits + self.wrong)
    }

    pub(crate) fn recall(self) -> f64 {
        share(self.hits, self.hits + self.missed)
    }
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
