//! A cell for every combination of values, in the order of rows: nothing has to be sorted.

use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::key::{Key, MOST_COLUMNS};

/// There may be so many cells per row: a cell costs less than to sort a row does.
const CELLS_PER_ROW: usize = 4;

/// Where each combination has its cell: its ids are the digits of the cell's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    /// How many values each column has; 1 past the last one.
    bases: [u32; MOST_COLUMNS],
    len: u32,
}

impl Cells {
    /// The cells of all combinations of values, if there are any, and not too many for so many rows.
    pub(crate) fn of(dictionaries: &[Arc<Dictionary>], rows: usize) -> Option<Self> {
        let mut bases = [1; MOST_COLUMNS];
        for (base, dictionary) in bases.iter_mut().zip(dictionaries) {
            *base = dictionary.len() as u32;
        }
        let len = bases.into_iter().try_fold(1, u32::checked_mul)?;
        let most = rows.saturating_mul(CELLS_PER_ROW);
        (1..=most)
            .contains(&(len as usize))
            .then_some(Self { bases, len })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// The cell of a combination, whose ids come one by one.
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
