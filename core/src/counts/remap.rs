//! Rows whose ids are translated to the ids of larger dictionaries.

use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key, Refused, Rows};

use super::parse::refusal;
use crate::error::Result;

/// Rows with their ids in larger dictionaries that contain all of their values. Dictionaries are
/// sorted, so sorted rows stay sorted.
pub(crate) struct Remap<'a> {
    rows: &'a Rows,
    /// For each column, the new id of each old id.
    ids: Vec<Vec<u32>>,
}

impl<'a> Remap<'a> {
    /// Every value of a column of `rows` must be in the column's dictionary of `whole`.
    pub(crate) fn new(rows: &'a Rows, whole: &[Arc<Dictionary>]) -> Self {
        let columns = rows.dictionaries().iter().zip(whole);
        Self { rows, ids: columns.map(|(part, whole)| whole.places_of(part)).collect() }
    }

    /// The new ids of a column, row by row.
    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = u32> {
        let ids = &self.ids[column];
        self.rows.ids()[column].iter().map(|id| ids[*id as usize])
    }

    /// Every row, with its new ids.
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

/// Dictionaries with the values of both, and the rows of both with their ids in these dictionaries.
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
