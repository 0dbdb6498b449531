//! The samples of an export as values, for hosts that write them in a form of their own, such as columns.

use tallyfold::{Deltas, Key, Window};

use crate::sample::Sample;
use crate::walk::Walk;

/// The counts of a group in one window, or their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The window.
    pub window: Window,
    /// Whether the counts are all that there are and no longer change; for changes, whether they are the last ones.
    pub settled: bool,
    /// The position of each value in its dictionary.
    pub key: Key,
    /// The counts, or their changes.
    pub counts: Deltas,
}

/// All samples of an export, in the order of its format. Its size does not grow with the number of rows.
#[derive(Clone)]
pub struct Samples {
    walk: Walk,
    scratch: Vec<Sample>,
}

impl Samples {
    pub(crate) fn new(walk: Walk) -> Self {
        Self {
            walk,
            scratch: Vec::new(),
        }
    }
}

impl Iterator for Samples {
    type Item = Counted;

    fn next(&mut self) -> Option<Counted> {
        let key = self.walk.next(1, &mut self.scratch)?;
        let sample = self.scratch.first()?;
        Some(Counted {
            window: sample.window,
            settled: sample.settled,
            key,
            counts: sample.counts(),
        })
    }
}
