//! Columns of dictionary ids and counts, and how they are built.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::counts::{Counts, sum_overflow};
use super::dictionary::{Dictionary, Interner};
use crate::dimension::Dimensions;
use crate::error::{Code, Error, Result};

/// Rows in columns, in canonical form: dictionaries sorted and without unused values, rows
/// sorted and distinct. Equal contents are therefore equal columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(super) dictionaries: Vec<Dictionary>,
    /// Per dimension, the id of each row's value.
    pub(super) ids: Vec<Vec<u32>>,
    pub(super) success: Vec<u64>,
    pub(super) errors: Vec<u64>,
    pub(super) filtered: Vec<u64>,
    pub(super) totals: Counts,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.success.len()
    }

    pub(super) fn value(&self, row: usize, column: usize) -> &str {
        self.dictionaries[column].value(self.ids[column][row])
    }

    pub(super) fn counts(&self, row: usize) -> Counts {
        Counts {
            success: self.success[row],
            errors: self.errors[row],
            filtered: self.filtered[row],
        }
    }

    /// Adds rows up by the given columns, in that order.
    pub(super) fn regroup(&self, columns: &[usize]) -> Result<Self> {
        let mut builder = RowsBuilder::new(columns.len(), usize::MAX);
        builder.add_rows(self, columns, |_| true)?;
        Ok(builder.finish())
    }

    /// The rows that `keep` wants, by their index.
    pub(super) fn filter(&self, keep: impl Fn(usize) -> bool) -> Result<Self> {
        let columns: Vec<usize> = (0..self.ids.len()).collect();
        let mut builder = RowsBuilder::new(columns.len(), usize::MAX);
        builder.add_rows(self, &columns, keep)?;
        Ok(builder.finish())
    }

    /// Adds up rows of the same columns.
    pub(super) fn combine<'a>(
        all: impl IntoIterator<Item = &'a Self>,
        width: usize,
    ) -> Result<Self> {
        let columns: Vec<usize> = (0..width).collect();
        let mut builder = RowsBuilder::new(width, usize::MAX);
        for rows in all {
            builder.add_rows(rows, &columns, |_| true)?;
        }
        Ok(builder.finish())
    }
}

/// The ids of one combination, as many as there are columns.
pub(crate) type Key = [u32; 4];

/// A key as one number, which hashes in one go.
#[inline]
fn packed(key: Key) -> u128 {
    key.iter()
        .fold(0, |packed, id| packed << 32 | u128::from(*id))
}

/// Whether a combination was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    New,
    Again,
}

/// Adds counts up by combination.
#[derive(Debug)]
pub(crate) struct RowsBuilder {
    interners: Vec<Interner>,
    keys: Vec<Key>,
    counts: Vec<Counts>,
    index: HashTable<u32>,
    hasher: FixedState,
    totals: Counts,
    group_limit: usize,
}

impl RowsBuilder {
    pub(crate) fn new(width: usize, group_limit: usize) -> Self {
        debug_assert!(
            width <= Dimensions::MOST,
            "a table has at most four dimensions"
        );
        Self {
            interners: (0..width).map(|_| Interner::default()).collect(),
            keys: Vec::new(),
            counts: Vec::new(),
            index: HashTable::new(),
            hasher: FixedState::default(),
            totals: Counts::default(),
            // Rows are numbered in 32 bits.
            group_limit: group_limit.min(u32::MAX as usize),
        }
    }

    /// The id of a value in a column.
    pub(crate) fn intern(&mut self, column: usize, value: &str) -> Result<u32> {
        self.interners[column].intern(value).ok_or_else(|| {
            let message = "the distinct values of one dimension take more than 1 GiB";
            Error::new(Code::GroupLimit, message)
        })
    }

    /// The id of a value in a column; `None` if the dictionary is full, or the value not UTF-8.
    #[inline]
    pub(crate) fn intern_bytes(&mut self, column: usize, value: &[u8]) -> Option<u32> {
        self.interners[column].intern_bytes(value)
    }

    /// Adds counts to a combination. Ids past the last column are to be 0.
    pub(crate) fn add(&mut self, key: Key, counts: Counts) -> Result<Added> {
        if self.totals.checked_add(counts).is_none() {
            return Err(sum_overflow());
        }
        self.try_add(key, counts, true).ok_or_else(|| {
            let message = format!(
                "there are more than {} groups, which is the limit",
                self.group_limit
            );
            Error::new(Code::GroupLimit, message)
        })
    }

    /// Adds counts to a combination, or changes nothing: `None` if a sum would overflow, if there
    /// would be too many groups, or if the combination is there and may not be repeated.
    #[inline]
    pub(crate) fn try_add(&mut self, key: Key, counts: Counts, may_repeat: bool) -> Option<Added> {
        let totals = self.totals.checked_add(counts)?;
        let hash = self.hasher.hash_one(packed(key));
        let added = match self.index.find(hash, |row| self.keys[*row as usize] == key) {
            Some(_) if !may_repeat => return None,
            Some(row) => {
                // No row can overflow where the total did not.
                let sum = &mut self.counts[*row as usize];
                *sum = sum.checked_add(counts)?;
                Added::Again
            }
            None if self.keys.len() >= self.group_limit => return None,
            None => {
                let row = self.keys.len() as u32;
                self.keys.push(key);
                self.counts.push(counts);
                let (keys, hasher) = (&self.keys, &self.hasher);
                self.index.insert_unique(hash, row, |row| {
                    hasher.hash_one(packed(keys[*row as usize]))
                });
                Added::New
            }
        };
        self.totals = totals;
        Some(added)
    }

    /// Adds the wanted rows of another table; `columns` says which of its columns become ours.
    fn add_rows(
        &mut self,
        rows: &Rows,
        columns: &[usize],
        wanted: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut known: Vec<Vec<Option<u32>>> = columns
            .iter()
            .map(|column| vec![None; rows.dictionaries[*column].len()])
            .collect();
        for row in (0..rows.len()).filter(|row| wanted(*row)) {
            let mut key = Key::default();
            for (ours, theirs) in columns.iter().enumerate() {
                let id = rows.ids[*theirs][row];
                let known = &mut known[ours][id as usize];
                key[ours] = match known {
                    Some(id) => *id,
                    None => {
                        let value = rows.dictionaries[*theirs].value(id);
                        *known.insert(self.intern(ours, value)?)
                    }
                };
            }
            self.add(key, rows.counts(row))?;
        }
        Ok(())
    }

    /// The rows in canonical form.
    pub(crate) fn finish(self) -> Rows {
        let (dictionaries, ranks): (Vec<_>, Vec<_>) = self
            .interners
            .into_iter()
            .map(Interner::into_sorted)
            .unzip();
        let mut rows: Vec<(Key, Counts)> = self.keys.into_iter().zip(self.counts).collect();
        for (key, _) in &mut rows {
            for (id, ranks) in key.iter_mut().zip(&ranks) {
                *id = ranks[*id as usize];
            }
        }
        rows.sort_unstable_by_key(|(key, _)| *key);
        let column = |column: usize| rows.iter().map(|(key, _)| key[column]).collect();
        Rows {
            ids: (0..dictionaries.len()).map(column).collect(),
            dictionaries,
            success: rows.iter().map(|(_, counts)| counts.success).collect(),
            errors: rows.iter().map(|(_, counts)| counts.errors).collect(),
            filtered: rows.iter().map(|(_, counts)| counts.filtered).collect(),
            totals: self.totals,
        }
    }
}
