//! What is exported.

use std::sync::Arc;

use tallyfold::{Comparison, CountTable, Deltas, Revision, Series, Window, Windowed};

/// Counts to export: the counts of a table, which are written by response, the counts of a series, or the changes of a
/// revision.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) rows: Windowed,
    /// The number of the revision, if these are its changes.
    pub(crate) revision: Option<u32>,
}

impl Source {
    /// The changes of a window's counts up to the revision with that number. `settled` means that it is the last one.
    #[must_use]
    pub fn changes(changes: &Arc<Comparison>, window: Window, number: u32, settled: bool) -> Self {
        let mut rows = changes.windowed(window);
        for window in &mut rows.windows {
            window.settled = settled;
        }
        Self::of_rows(rows, Some(number))
    }

    /// Rows that come from another memory; with the number of a revision, they are its changes.
    #[must_use]
    pub fn of_rows(rows: Windowed, revision: Option<u32>) -> Self {
        Self { rows, revision }
    }
}

impl From<&CountTable> for Source {
    fn from(table: &CountTable) -> Self {
        Self {
            rows: table.windowed(),
            revision: None,
        }
    }
}

impl From<&Arc<Series>> for Source {
    fn from(series: &Arc<Series>) -> Self {
        Self {
            rows: series.windowed(),
            revision: None,
        }
    }
}

impl From<&Revision> for Source {
    fn from(revision: &Revision) -> Self {
        let changes = Arc::new(revision.changes.clone());
        Self::changes(&changes, revision.window, revision.number, revision.settled)
    }
}

impl Source {
    /// Whether a change is below 0.
    pub(crate) fn has_negative(&self) -> bool {
        let is_negative = |(_, change): (_, Deltas)| change.each().iter().any(|count| *count < 0);
        let mut windows = self.rows.windows.iter();
        self.revision.is_some() && windows.any(|rows| rows.clone().any(is_negative))
    }
}
