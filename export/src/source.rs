//! What is exported.

use std::sync::Arc;

use tallyfold::{Comparison, CountTable, Revision, Series, Window, Windowed};

/// Counts to export: those of a table, which are written by response; those of a series; or the changes of a revision.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) rows: Windowed,
    /// The number of the revision, if these are its changes.
    pub(crate) revision: Option<u32>,
}

impl Source {
    /// The changes of a window's counts, with the number of the window's revision that they lead to.
    #[must_use]
    pub fn changes(changes: &Arc<Comparison>, window: Window, number: u32) -> Self {
        Self {
            rows: changes.windowed(window),
            revision: Some(number),
        }
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
        Self::changes(&Arc::new(revision.changes.clone()), revision.window, 0)
    }
}
