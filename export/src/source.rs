//! What is exported.

use std::sync::Arc;

use tallyfold::{CountTable, Revision, Series, Windowed};

/// Counts to export: those of a table, which are written by response; those of a series; or the changes of a revision.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) rows: Windowed,
    /// The number of the revision, if these are its changes.
    pub(crate) revision: Option<u32>,
}

impl Source {
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
        Self {
            rows: changes.windowed(revision.window),
            revision: Some(revision.number),
        }
    }
}
