//! A table's rows and columns, as its users see them.

use tallyfold_engine::{Counts, Dictionary, Rows};

use crate::dimension::Dimension;

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
