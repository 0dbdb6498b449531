//! One cell for every possible combination of values, in the order of rows, so that nothing has to
//! be sorted.

use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::key::{Key, MOST_COLUMNS};

/// Cells are used if there are at most this many per row: a cell takes less time than sorting a
/// row.
const CELLS_PER_ROW: usize = 4;

/// Numbers the cells: the ids of a combination are the digits of its cell's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    /// How many values each column has; 1 for unused columns.
    bases: [u32; MOST_COLUMNS],
    len: u32,
}

impl Cells {
    /// Cells for all combinations of values; `None` if there are none, or too many for this number
    /// of rows.
    pub(crate) fn of(dictionaries: &[Arc<Dictionary>], rows: usize) -> Option<Self> {
        let mut bases = [1; MOST_COLUMNS];
        for (base, dictionary) in bases.iter_mut().zip(dictionaries) {
            *base = dictionary.len() as u32;
        }
        let len = bases.into_iter().try_fold(1, u32::checked_mul)?;
        let most = rows.saturating_mul(CELLS_PER_ROW);
        (1..=most).contains(&(len as usize)).then_some(Self { bases, len })
    }

    /// The number of cells.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// The cell of a combination, given its ids one by one.
    #[inline(always)]
    pub(crate) fn at(&self, ids: impl Iterator<Item = u32>) -> u32 {
        let digits = ids.zip(self.bases);
        digits.fold(0, |cell, (id, base)| cell * base + id)
    }

    /// The combination of a cell.
    #[inline]
    pub(crate) fn key(&self, mut cell: u32) -> Key {
        let mut key = Key::default();
        for (id, base) in key.iter_mut().zip(self.bases).rev() {
            *id = cell % base;
            cell /= base;
        }
        key
    }
}
