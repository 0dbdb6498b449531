//! Exact counts by combination of dimension values.

mod change;
mod columns;
mod compare;
mod counts;
mod coverage;
mod merge;
mod remap;
mod report;
mod saved;
mod selection;
mod series;
mod view;

use std::sync::Arc;

pub use change::{Deltas, Presence, Shares};
pub use columns::CountColumns;
pub use compare::{Comparison, ComparisonRow, compare};
pub(crate) use counts::{parse_count, refusal};
use selection::Selection;
pub use series::{Series, SeriesRow, SeriesWindow};
use tallyfold_engine::Rows;
pub use tallyfold_engine::{Counts, Dictionary, Rates};
pub use view::{Column, Row};

use crate::dimension::{Dimensions, Metric};
use crate::error::Result;
use crate::window::Window;

/// Counts by dimension values, of one response or of several that were merged.
///
/// A table does not change: its methods make new ones. Rows are sorted by their dimension values
/// (by UTF-8 bytes, in the order of [`CountTable::dimensions`]), whatever order they came in.
/// It remembers which window each count belongs to, so that a window can be replaced.
///
/// ```
/// # use tallyfold::{Aggregator, AggregatorOptions};
/// let body = br#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
///     "totalDelivered": "7", "totalErrors": "1", "totalFiltered": "0",
///     "counts": [{"success": "7", "errors": "1", "filtered": "0",
///                 "dimensions": {"integration": "warehouse"}}]}"#;
/// let mut aggregator = Aggregator::new(&["integration"], AggregatorOptions::default())?;
/// aggregator.push(body)?;
/// let table = aggregator.finish()?;
/// assert_eq!(table.row(0).map(|row| row.counts().success), Some(7));
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTable {
    dimensions: Dimensions,
    metric: Option<Metric>,
    /// All parts added up.
    rows: Arc<Rows>,
    /// At least one, sorted, none overlapping another.
    parts: Vec<Part>,
    selection: Selection,
}

/// What one response said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) window: Window,
    /// The response's totals; `None` once it was filtered.
    pub(crate) reported: Option<Counts>,
    pub(crate) notes: Notes,
    pub(crate) rows: Arc<Rows>,
}

/// What was let pass because the caller asked for tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Entries whose combination of dimension values stood in the response before; they were added up.
    pub repeated_combinations: u64,
    /// Dimension values that were `null`; they were read as empty strings.
    pub null_dimensions: u64,
}

/// Whether the totals that the service reports are the sums of its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconciliation {
    /// Each total is the sum of its counts.
    Balanced,
    /// The reported total minus the sum, for each count; not all are 0.
    Unbalanced {
        /// `totalDelivered` minus the sum of `success`.
        success: i128,
        /// `totalErrors` minus the sum of `errors`.
        errors: i128,
        /// `totalFiltered` minus the sum of `filtered`.
        filtered: i128,
    },
    /// The table was filtered, so that totals of the whole say nothing.
    Unavailable,
}

impl CountTable {
    /// The table of one response.
    pub(crate) fn of_response(dimensions: Dimensions, metric: Option<Metric>, part: Part) -> Self {
        let rows = Arc::clone(&part.rows);
        let selection = Selection::default();
        Self {
            dimensions,
            metric,
            rows,
            parts: vec![part],
            selection,
        }
    }

    /// The table of several parts, sorted and not overlapping.
    fn of_parts(
        dimensions: Dimensions,
        metric: Option<Metric>,
        parts: Vec<Part>,
        selection: Selection,
    ) -> Result<Self> {
        let rows = match parts.as_slice() {
            [part] => Arc::clone(&part.rows),
            _ => {
                let all: Vec<_> = parts.iter().map(|part| &*part.rows).collect();
                Arc::new(Rows::combine(&all, dimensions.len()).map_err(refusal)?)
            }
        };
        Ok(Self {
            dimensions,
            metric,
            rows,
            parts,
            selection,
        })
    }

    /// Whether the table is of that metric by those dimensions, and whole.
    pub(crate) fn counts_all(&self, metric: Metric, dimensions: &Dimensions) -> bool {
        self.metric == Some(metric) && self.dimensions == *dimensions && self.selection.is_whole()
    }

    /// The dimensions of the rows, in sorting order.
    #[must_use]
    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    /// The endpoint that the counts are from; `None` if an [`Aggregator`](crate::Aggregator) was
    /// not told.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        self.metric
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.rows.totals()
    }

    /// `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them, added up
    /// over all windows; `None` for a filtered table, and where a sum is above 2^64 - 1.
    #[must_use]
    pub fn reported(&self) -> Option<Counts> {
        let [success, errors, filtered] = self.reported_sums()?.map(|sum| u64::try_from(sum).ok());
        Some(Counts {
            success: success?,
            errors: errors?,
            filtered: filtered?,
        })
    }

    /// What the parts reported, added up, if each still has its totals. No sum of as many `u64` as
    /// fit in memory overflows.
    fn reported_sums(&self) -> Option<[i128; 3]> {
        self.parts.iter().try_fold([0; 3], |sums: [i128; 3], part| {
            let reported = part.reported?;
            let each = [reported.success, reported.errors, reported.filtered];
            let [a, b, c] = each.map(i128::from);
            Some([sums[0] + a, sums[1] + b, sums[2] + c])
        })
    }

    /// Whether the reported totals are the sums of the counts. A difference is no error: the API
    /// is Beta, and the caller decides.
    #[must_use]
    pub fn reconciliation(&self) -> Reconciliation {
        let Some(reported) = self.reported_sums() else {
            return Reconciliation::Unavailable;
        };
        let totals = self.totals();
        let success = reported[0] - i128::from(totals.success);
        let errors = reported[1] - i128::from(totals.errors);
        let filtered = reported[2] - i128::from(totals.filtered);
        if [success, errors, filtered] == [0; 3] {
            return Reconciliation::Balanced;
        }
        Reconciliation::Unbalanced {
            success,
            errors,
            filtered,
        }
    }

    /// What was let pass, added up over all windows.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.parts.iter().fold(Notes::default(), |sum, part| Notes {
            repeated_combinations: sum
                .repeated_combinations
                .saturating_add(part.notes.repeated_combinations),
            null_dimensions: sum
                .null_dimensions
                .saturating_add(part.notes.null_dimensions),
        })
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        (index < self.len()).then_some(Row {
            rows: &self.rows,
            index,
        })
    }

    /// The rows in sorted order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|index| Row {
            rows: &self.rows,
            index,
        })
    }

    /// The columns of the dimensions, in the order of [`CountTable::dimensions`].
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        let rows = &self.rows;
        view::columns(&self.dimensions, rows.dictionaries(), rows.ids())
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        self.rows.success()
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        self.rows.errors()
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        self.rows.filtered()
    }

    /// Adds rows up by some of the dimensions, in the given order; by none, to one row (or to none,
    /// if there is none).
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`.
    pub fn group_by<S: AsRef<str>>(&self, names: &[S]) -> Result<Self> {
        let kept = self.dimensions.subset(names)?;
        let columns: Vec<usize> = kept
            .iter()
            .filter_map(|dimension| self.dimensions.position(dimension))
            .collect();
        let mut parts = self.parts.clone();
        for part in &mut parts {
            part.rows = Arc::new(part.rows.regroup(&columns));
        }
        Self::of_parts(kept, self.metric, parts, self.selection.clone())
    }

    /// Keeps the rows whose value is among the wanted ones, for each dimension named. What is left
    /// has no reported totals, and is merged only with tables that were filtered alike.
    ///
    /// ```
    /// # fn f(table: &tallyfold::CountTable) -> tallyfold::Result<tallyfold::CountTable> {
    /// table.filter(&[("integration".to_owned(), vec!["warehouse".to_owned()])])
    /// # }
    /// ```
    ///
    /// # Errors
    /// `unknown_dimension` for a name that the table lacks, `repeated_dimension`.
    pub fn filter(&self, wanted: &[(String, Vec<String>)]) -> Result<Self> {
        let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
        let named = self
            .dimensions
            .subset(&names)
            .map_err(|error| error.with_argument("filter"))?;
        if named.is_empty() {
            return Ok(self.clone());
        }
        let mut selection = self.selection.clone();
        for (dimension, (_, values)) in named.iter().zip(wanted) {
            selection = selection.narrowed(dimension, values);
        }
        let columns: Vec<usize> = named
            .iter()
            .filter_map(|dimension| self.dimensions.position(dimension))
            .collect();
        let mut parts = self.parts.clone();
        for part in &mut parts {
            let rows = &part.rows;
            let mut among: Vec<Option<Vec<bool>>> = vec![None; rows.width()];
            for (column, (_, values)) in columns.iter().zip(wanted) {
                let is_among = |value: &str| values.iter().any(|wanted| wanted == value);
                let dictionary = &rows.dictionaries()[*column];
                among[*column] = Some(dictionary.values().map(is_among).collect());
            }
            part.rows = Arc::new(rows.filter(&among));
            part.reported = None;
        }
        Self::of_parts(self.dimensions, self.metric, parts, selection)
    }

    /// The positions of the `n` rows with the most `by` (`success`, `errors` or `filtered`), most
    /// first; equal counts in the order of their dimension values.
    ///
    /// # Errors
    /// `invalid_argument` for any other name.
    pub fn top(&self, n: usize, by: &str) -> Result<Vec<usize>> {
        let column = view::named_count(by, [self.success(), self.errors(), self.filtered()])?;
        Ok(view::largest(n, self.len(), |row| column[row]))
    }
}
