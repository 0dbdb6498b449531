//! The counts that are exported.

use std::sync::Arc;

use tallyfold::{
    Comparison, CountTable, Deltas, Dictionary, Dimensions, Revision, Series, Window, Windowed,
    WindowedColumns,
};

/// Counts to export: the counts of a table, with a window for each response; the counts of a series; the changes of a
/// revision; or the totals of a ledger.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) rows: Windowed,
    /// The number of the revision, if these are its changes.
    pub(crate) revision: Option<u32>,
    /// Whether these are running totals. Their only window extends from the time at which the totals began to their timestamp.
    pub(crate) is_total: bool,
}

impl Source {
    /// The changes of a window's counts from the previous revision to the one with this number. `settled` means that no
    /// other revision follows.
    #[must_use]
    pub fn changes(changes: &Arc<Comparison>, window: Window, number: u32, settled: bool) -> Self {
        let mut rows = changes.windowed(window);
        for window in &mut rows.windows {
            window.settled = settled;
        }
        Self::of_rows(rows, Some(number))
    }

    /// Rows from elsewhere, such as another instance of WebAssembly. With the number of a revision, they are its changes.
    #[must_use]
    pub fn of_rows(rows: Windowed, revision: Option<u32>) -> Self {
        Self { rows, revision, is_total: false }
    }
}

impl From<&CountTable> for Source {
    fn from(table: &CountTable) -> Self {
        Self::of_rows(table.windowed(), None)
    }
}

impl From<&Arc<Series>> for Source {
    fn from(series: &Arc<Series>) -> Self {
        Self::of_rows(series.windowed(), None)
    }
}

impl From<&Revision> for Source {
    fn from(revision: &Revision) -> Self {
        let changes = Arc::new(revision.changes.clone());
        Self::changes(&changes, revision.window, revision.number, revision.settled)
    }
}

impl Source {
    /// Whether any change is negative.
    pub(crate) fn has_negative(&self) -> bool {
        let is_negative = |(_, change): (_, Deltas)| change.each().iter().any(|count| *count < 0);
        let mut windows = self.rows.windows.iter();
        self.revision.is_some() && windows.any(|rows| rows.clone().any(is_negative))
    }
}

/// The names of dimensions, as owned strings.
pub(crate) fn owned_names(dimensions: Dimensions) -> Vec<String> {
    dimensions.names().into_iter().map(str::to_owned).collect()
}

/// Creates columns for groups in one window, without counts. Each group consists of its values, and the groups must be
/// sorted. Returns `None` if a group has fewer values than there are dimensions.
pub(crate) fn columns_of<'a>(
    dimensions: Vec<String>,
    window: Window,
    groups: impl Iterator<Item = &'a [String]> + Clone,
) -> Option<WindowedColumns> {
    let mut columns = WindowedColumns {
        windows: vec![(window, true)],
        window_ids: groups.clone().map(|_| 0).collect(),
        ..WindowedColumns::default()
    };
    for column in 0..dimensions.len() {
        let values = groups.clone().map(|group| group.get(column).map(String::as_str));
        let values: Vec<&str> = values.collect::<Option<_>>()?;
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let ids = values.iter().filter_map(|value| distinct.binary_search(value).ok());
        columns.ids.push(ids.map(|id| id as u32).collect());
        let dictionary = Dictionary::of_sorted(distinct.into_iter())?;
        columns.dictionaries.push(Arc::new(dictionary));
    }
    columns.dimensions = dimensions;
    Some(columns)
}
