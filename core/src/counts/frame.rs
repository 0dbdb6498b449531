//! What tables, series and comparisons have in common: rows of labels and numbers, in columns.

use std::cmp::Reverse;
use std::sync::Arc;

use tallyfold_engine::{Dictionary, Key};

use super::change::{Deltas, Presence};
use super::count_name::RankBy;
use super::dimension::Dimensions;
use super::metric::Metric;
use super::series_window::SeriesWindow;

/// Rows of labels and numbers: a [`CountTable`](crate::CountTable), a [`Series`](crate::Series) or a
/// [`Comparison`](crate::Comparison). They are immutable, and their rows are sorted by their labels.
pub trait Frame {
    /// The dimensions of the rows, in sorting order.
    fn dimensions(&self) -> &Dimensions;

    /// The endpoint that the counts are from; `None` if an [`Aggregator`](crate::Aggregator) got no metric.
    fn metric(&self) -> Option<Metric>;

    /// The number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of the dimensions: for each dimension its distinct values, and for each row the
    /// position of its value.
    fn keys(&self) -> Keys<'_>;

    /// All columns as they are stored, in the order in which they are shown.
    fn columns(&self) -> Vec<Column<'_>>;

    /// The number by which a row is ranked: the count with that name, or how much it changed.
    fn rank(&self, row: usize, by: RankBy) -> u128;

    /// The three quotients of a row: rates, or shares of a change.
    fn fractions(&self, row: usize) -> [Option<f64>; 3];

    /// The names of those quotients.
    fn fraction_names(&self) -> [&'static str; 3];

    /// How the counts of a row changed; `None` for frames other than comparisons.
    fn delta(&self, row: usize) -> Option<Deltas> {
        let _ = row;
        None
    }

    /// The frame as JSON with every count as a string of digits. The same frame gives the same bytes, in
    /// every language.
    fn to_json(&self) -> String;

    /// The positions of the `n` rows that rank highest, highest first; rows of equal rank keep
    /// their order.
    fn top(&self, n: usize, by: RankBy) -> Vec<usize> {
        let ranks = (0..self.len()).map(|row| self.rank(row, by));
        highest(&ranks.collect::<Vec<_>>(), n)
    }

    /// The row at a position.
    fn row(&self, index: usize) -> Option<Row<'_, Self>>
    where
        Self: Sized,
    {
        (index < self.len()).then_some(Row { frame: self, index })
    }

    /// The rows in sorted order.
    fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_, Self>>
    where
        Self: Sized,
    {
        (0..self.len()).map(|index| Row { frame: self, index })
    }
}

/// The positions of the `n` highest numbers, highest first; equal numbers keep their order.
fn highest(numbers: &[u128], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by_key(|place| (Reverse(numbers[*place]), *place));
    order.truncate(n);
    order
}

/// One row. In a [`CountTable`](crate::CountTable), it is a combination of dimension values with
/// its counts; in a [`Series`](crate::Series), the same in one window; in a
/// [`Comparison`](crate::Comparison), a group with its change.
#[derive(Debug)]
pub struct Row<'a, F> {
    pub(crate) frame: &'a F,
    pub(crate) index: usize,
}

impl<F> Clone for Row<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Row<'_, F> {}

impl<'a, F: Frame> Row<'a, F> {
    /// The values of the dimensions, in the order of [`Frame::dimensions`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a, F> {
        self.frame.keys().values(self.index)
    }

    /// The row's position.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

/// The values of the dimensions of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// For each dimension, its distinct values, sorted.
    pub dictionaries: &'a [Arc<Dictionary>],
    /// For each dimension and row, the position of the row's value in the dictionary.
    pub ids: &'a [Vec<u32>],
}

impl<'a> Keys<'a> {
    /// The values of a row, in the order of the dimensions.
    pub fn values(self, row: usize) -> impl ExactSizeIterator<Item = &'a str> {
        let columns = self.dictionaries.iter().zip(self.ids);
        columns.map(move |(dictionary, ids)| dictionary.value(ids[row]))
    }

    /// The position of each of a row's values in its dictionary.
    pub(crate) fn key(self, row: usize) -> Key {
        let mut key = Key::default();
        for (id, ids) in key.iter_mut().zip(self.ids) {
            *id = ids[row];
        }
        key
    }

    /// A column for each dimension.
    pub(crate) fn columns(self, dimensions: &Dimensions) -> Vec<Column<'a>> {
        let columns = dimensions.iter().zip(self.dictionaries).zip(self.ids);
        columns
            .map(|((dimension, dictionary), ids)| Column {
                side: None,
                name: dimension.as_str(),
                values: Values::Texts { dictionary, ids },
            })
            .collect()
    }
}

/// One column of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// `before` or `after` in a comparison, which has both; `None` in other frames.
    pub side: Option<&'static str>,
    /// The name of a dimension or of a count; `window` or `presence`.
    pub name: &'static str,
    /// The values, row by row.
    pub values: Values<'a>,
}

/// The values of a column, row by row. A host must support every kind of column, so a new kind breaks its build, on
/// purpose.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Texts that repeat.
    Texts {
        /// The distinct values, sorted.
        dictionary: &'a Dictionary,
        /// Per row, the position of its value in the dictionary.
        ids: &'a [u32],
    },
    /// Windows that repeat.
    Windows {
        /// The distinct windows, sorted.
        windows: &'a [SeriesWindow],
        /// Per row, the position of its window.
        ids: &'a [u32],
    },
    /// Which of two tables has the row's group.
    Presences(&'a [Presence]),
    /// Numbers of events.
    Counts(&'a [u64]),
}
