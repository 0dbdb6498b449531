//! A table's rows and columns, as its users see them.

use std::cmp::Reverse;
use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Rows};

use crate::dimension::{Dimension, Dimensions};
use crate::error::{Code, Error, Result};

/// The values of one dimension, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// The dimension.
    pub dimension: Dimension,
    /// Its distinct values.
    pub dictionary: &'a Dictionary,
    /// Per row, the id of its value: its position in the dictionary.
    pub ids: &'a [u32],
}

/// The columns of dimensions, each with its dictionary and ids.
pub(super) fn columns<'a>(
    dimensions: &'a Dimensions,
    dictionaries: &'a [Arc<Dictionary>],
    ids: &'a [Vec<u32>],
) -> impl ExactSizeIterator<Item = Column<'a>> {
    let columns = dimensions.as_slice().iter().zip(dictionaries).zip(ids);
    columns.map(|((dimension, dictionary), ids)| Column {
        dimension: *dimension,
        dictionary,
        ids,
    })
}

/// The one of three counts that `by` names.
///
/// # Errors
/// `invalid_argument` for any other name than `success`, `errors` and `filtered`.
pub(super) fn named_count<T>(by: &str, [success, errors, filtered]: [T; 3]) -> Result<T> {
    match by {
        "success" => Ok(success),
        "errors" => Ok(errors),
        "filtered" => Ok(filtered),
        _ => {
            let message = "want success, errors or filtered";
            Err(Error::argument("by", Code::InvalidArgument, message))
        }
    }
}

/// The positions of the `n` rows with the largest values, largest first; equal ones in row order.
pub(super) fn largest(n: usize, rows: usize, value: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|row| Reverse(value(*row)));
    order.truncate(n);
    order
}

/// One combination of dimension values and its counts.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(super) rows: &'a Rows,
    pub(super) index: usize,
}

impl<'a> Row<'a> {
    /// The values of the dimensions, in the order of [`CountTable::dimensions`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let Self { rows, index } = *self;
        (0..rows.width()).map(move |column| rows.value(index, column))
    }

    /// The counts of the combination.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.rows.counts(self.index)
    }

    /// The row's position in its table.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}
