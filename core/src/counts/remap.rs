//! Rows by the ids of a larger table's dictionaries.

use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key, Refused, Rows};

use super::parse::refusal;
use crate::error::Result;

/// Rows whose values are all in some larger dictionaries, with the ids that they have there.
/// Dictionaries are sorted, so that sorted rows stay sorted.
pub(crate) struct Remap<'a> {
    rows: &'a Rows,
    /// Per column, the new id of each old one.
    ids: Vec<Vec<u32>>,
}

impl<'a> Remap<'a> {
    /// Every value of a column of `rows` is to be in the column's dictionary of `whole`.
    pub(crate) fn new(rows: &'a Rows, whole: &[Arc<Dictionary>]) -> Self {
        let columns = rows.dictionaries().iter().zip(whole);
        Self {
            rows,
            ids: columns
                .map(|(part, whole)| positions(part, whole))
                .collect(),
        }
    }

    /// The new ids of a column, row by row.
    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = u32> {
        let ids = &self.ids[column];
        self.rows.ids()[column].iter().map(|id| ids[*id as usize])
    }

    /// Every row, by its new ids.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (Key, Counts)> {
        (0..self.rows.len()).map(|row| {
            let mut key = self.rows.key(row);
            for (id, ids) in key.iter_mut().zip(&self.ids) {
                *id = ids[*id as usize];
            }
            (key, self.rows.counts(row))
        })
    }
}

/// The dictionaries of the values of both, and both by the ids there.
///
/// # Errors
/// `group_limit`.
pub(crate) fn union<'a>(
    one: &'a Rows,
    other: &'a Rows,
) -> Result<(Vec<Arc<Dictionary>>, Remap<'a>, Remap<'a>)> {
    let columns = one.dictionaries().iter().zip(other.dictionaries());
    let dictionaries: Vec<_> = columns
        .map(|(one, other)| Some(Dictionary::union(&[one, other])?.0))
        .collect::<Option<_>>()
        .ok_or_else(|| refusal(Refused::DictionaryFull))?;
    let one = Remap::new(one, &dictionaries);
    let other = Remap::new(other, &dictionaries);
    Ok((dictionaries, one, other))
}

/// The id in `whole` of each value of `part`, all of which are there.
fn positions(part: &Dictionary, whole: &Dictionary) -> Vec<u32> {
    if part.len() == whole.len() {
        return (0..).take(part.len()).collect();
    }
    let mut from = 0;
    part.values()
        .map(|value| {
            let id = seek(whole, from, value);
            from = id + 1;
            id as u32
        })
        .collect()
}

/// The first id from `from` on whose value is not less, in steps that double: a few values are
/// found in many at a cost that grows with the few.
fn seek(whole: &Dictionary, from: usize, value: &str) -> usize {
    let is_less = |id: usize| whole.value(id as u32) < value;
    let (mut low, mut stride) = (from, 1);
    while low + stride <= whole.len() && is_less(low + stride - 1) {
        low += stride;
        stride *= 2;
    }
    let mut high = whole.len().min(low + stride);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_less(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
