//! The rows of a part as sources of exports.

use std::sync::Arc;

use tallyfold::{CountTable, Frame, Series, Window, Windowed, WindowedColumns};
use tallyfold_export::Source;

use super::report::Counted;
use crate::failure::{Failure, Result};

/// The rows of a part, as they are exported.
#[derive(Debug)]
pub(crate) enum Rows<'a> {
    /// One row for each group, with the counts of the whole time.
    Sum(&'a CountTable, Window),
    /// The rows of each response.
    Responses(&'a CountTable),
    /// The rows of each window.
    Series(Arc<Series>),
}

impl<'a> Rows<'a> {
    /// The rows of a part.
    ///
    /// A table holds counts that may still change apart from the others. With `sums`, a group gets one row even so, as a
    /// person expects of a file that is made anew; it is settled only if all of its counts are. Systems that keep samples
    /// get the settled ones by themselves. A table with gaps is never summed, because no window would say what it covers.
    ///
    /// # Errors
    /// For a comparison.
    pub(crate) fn of(counts: &'a Counted, sums: bool, picks: bool) -> Result<Self> {
        let table = match counts {
            Counted::Table(table) => table,
            Counted::Series(series) => return Ok(Self::Series(Arc::clone(series))),
            Counted::Comparison(_) => {
                return Err(Failure::usage(
                    "this format can't carry a comparison: want --format table, json, ndjson or csv",
                ));
            }
        };
        Ok(match table.coverage()[..] {
            [window] if sums => Self::Sum(table, window),
            _ if picks => Self::Series(Arc::new(table.by_window(None)?)),
            _ => Self::Responses(table),
        })
    }

    /// What rows are picked from, and whether it is a series.
    pub(crate) fn frame(&self) -> (&dyn Frame, bool) {
        match self {
            Self::Sum(table, _) | Self::Responses(table) => (*table, false),
            Self::Series(series) => (&**series, true),
        }
    }

    /// All rows.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn all(&self) -> Result<Source> {
        match self {
            Self::Sum(table, _) if table.windows().len() > 1 => {
                self.some(&(0..table.len()).collect::<Vec<_>>())
            }
            Self::Sum(table, _) | Self::Responses(table) => Ok(Source::from(*table)),
            Self::Series(series) => Ok(Source::from(series)),
        }
    }

    /// The rows at these positions, which are sorted.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn some(&self, rows: &[usize]) -> Result<Source> {
        let (frame, _) = self.frame();
        let keys = frame.keys();
        let pick = |ids: &Vec<u32>| rows.iter().map(|row| ids[*row]).collect();
        let (windows, window_ids) = self.windows(rows);
        let columns = WindowedColumns {
            metric: frame.metric(),
            dimensions: frame
                .dimensions()
                .names()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            dictionaries: keys.dictionaries.to_vec(),
            ids: keys.ids.iter().map(pick).collect(),
            windows,
            window_ids,
            counts: self.counts(rows),
            before: None,
        };
        Ok(Source::of_rows(Windowed::of_columns(columns)?, None))
    }

    /// The windows, with whether each is settled, and the position of each row's window.
    fn windows(&self, rows: &[usize]) -> (Vec<(Window, bool)>, Vec<u32>) {
        match self {
            Self::Sum(table, window) => {
                let is_settled = table.provisional().is_empty();
                (vec![(*window, is_settled)], vec![0; rows.len()])
            }
            Self::Responses(_) => (Vec::new(), Vec::new()),
            Self::Series(series) => {
                let windows = series.windows().iter();
                let windows = windows.map(|of| (of.window, of.complete && !of.provisional));
                let ids = rows.iter().map(|row| series.window_ids()[*row]);
                (windows.collect(), ids.collect())
            }
        }
    }

    fn counts(&self, rows: &[usize]) -> [Vec<u64>; 3] {
        let columns = match self {
            Self::Sum(table, _) | Self::Responses(table) => {
                [table.success(), table.errors(), table.filtered()]
            }
            Self::Series(series) => {
                let counts = series.counts();
                [counts.success(), counts.errors(), counts.filtered()]
            }
        };
        columns.map(|column| rows.iter().map(|row| column[*row]).collect())
    }
}
