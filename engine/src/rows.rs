//! Rows as columns of dictionary ids and counts, and the builder of rows.

use std::sync::Arc;

use crate::counts::Counts;
use crate::dictionary::Dictionary;
use crate::hash::HashKeys;
use crate::index::Index;
use crate::interner::Interner;
use crate::key::{Key, MOST_COLUMNS};

/// Rows in columns, in canonical form: dictionaries are sorted and without unused values, and rows
/// are sorted and distinct. So equal contents have equal columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub(crate) dictionaries: Vec<Arc<Dictionary>>,
    pub(crate) ids: Vec<Vec<u32>>,
    pub(crate) success: Vec<u64>,
    pub(crate) errors: Vec<u64>,
    pub(crate) filtered: Vec<u64>,
    pub(crate) totals: Counts,
}

impl Rows {
    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.success.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let numbers = self.len() * (self.width() * size_of::<u32>() + size_of::<Counts>());
        let values = self.dictionaries.iter().map(|dictionary| dictionary.memory());
        numbers + values.sum::<usize>() + size_of::<Self>()
    }

    /// How many columns of ids.
    #[must_use]
    pub fn width(&self) -> usize {
        self.ids.len()
    }

    /// The distinct values of each column.
    #[must_use]
    pub fn dictionaries(&self) -> &[Arc<Dictionary>] {
        &self.dictionaries
    }

    /// Per column, the id of each row's value.
    #[must_use]
    pub fn ids(&self) -> &[Vec<u32>] {
        &self.ids
    }

    /// The value of a row in a column.
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> &str {
        self.dictionaries[column].value(self.ids[column][row])
    }

    /// The ids of a row.
    #[must_use]
    pub fn key(&self, row: usize) -> Key {
        let mut key = Key::default();
        for (id, ids) in key.iter_mut().zip(&self.ids) {
            *id = ids[row];
        }
        key
    }

    /// The counts of a row.
    #[must_use]
    pub fn counts(&self, row: usize) -> Counts {
        Counts {
            success: self.success[row],
            errors: self.errors[row],
            filtered: self.filtered[row],
        }
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        &self.success
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        &self.errors
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        &self.filtered
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.totals
    }
}

/// Whether a combination is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a new row.
    New,
    /// The counts were added to a row.
    Again,
}

/// Why counts were not added. The rows are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A total would be above 2^64 - 1.
    SumOverflow,
    /// There would be more groups than allowed.
    TooManyGroups {
        /// How many are allowed.
        limit: usize,
    },
    /// The table would take more bytes than allowed.
    TooManyBytes {
        /// How many are allowed.
        limit: usize,
    },
    /// The combination is there already and must not be repeated.
    Repeated,
    /// The distinct values of one dimension take more than 1 GiB.
    DictionaryFull,
    /// There is no memory for them.
    OutOfMemory,
}

/// How large a table may be.
#[derive(Clone, Copy, Debug)]
pub struct RowsLimits {
    /// The number of groups.
    pub groups: usize,
    /// The bytes: the bytes of each distinct value and [`RowsLimits::PER_VALUE`] more, and [`RowsLimits::PER_GROUP`]
    /// for each group.
    pub bytes: usize,
}

impl RowsLimits {
    /// About how many bytes a distinct value takes in addition to its own.
    pub const PER_VALUE: usize = 32;

    /// About how many bytes a group takes.
    pub const PER_GROUP: usize = 64;

    /// No limits.
    pub const NONE: Self = Self { groups: usize::MAX, bytes: usize::MAX };
}

/// The sums of one combination.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) key: Key,
    pub(crate) counts: Counts,
}

/// If fewer bytes are needed, [`RowsBuilder::check_memory`] does not check whether there is memory for them.
const MUCH: usize = 1 << 20;

/// The initial capacity for sums. It grows at other numbers than the capacity for values and the index, because growing
/// each of them takes a while.
const SOME_SUMS: usize = 20;

/// Adds counts up by combination.
#[derive(Debug)]
pub struct RowsBuilder {
    interners: Vec<Interner>,
    sums: Vec<Sum>,
    index: Index<2>,
    keys: HashKeys,
    totals: Counts,
    limits: RowsLimits,
}

impl RowsBuilder {
    /// A builder of rows with `width` columns, at most [`MOST_COLUMNS`].
    #[must_use]
    pub fn new(width: usize, limits: RowsLimits, keys: HashKeys) -> Self {
        debug_assert!(width <= MOST_COLUMNS, "a key has room for four ids");
        Self {
            interners: (0..width).map(|_| Interner::new(keys.clone())).collect(),
            sums: Vec::with_capacity(SOME_SUMS),
            index: Index::default(),
            keys,
            totals: Counts::default(),
            limits: RowsLimits {
                // Row numbers have 32 bits, and one value is reserved for "none".
                groups: limits.groups.min(u32::MAX as usize - 1),
                ..limits
            },
        }
    }

    /// The id of a value in a column.
    ///
    /// # Errors
    /// [`Refused::DictionaryFull`] and [`Refused::OutOfMemory`].
    pub fn intern(&mut self, column: usize, value: &str) -> Result<u32, Refused> {
        let interner = &mut self.interners[column];
        interner.intern(value).ok_or_else(|| {
            if interner.has_room(value.len()) {
                Refused::OutOfMemory
            } else {
                Refused::DictionaryFull
            }
        })
    }

    /// The same for the value at the start of `bytes`, which must be UTF-8.
    #[inline(always)]
    pub(crate) fn intern_in(&mut self, column: usize, bytes: &[u8], length: usize) -> Option<u32> {
        self.interners[column].intern_in(bytes, length)
    }

    /// Loads the slot at which the search for a combination starts into the processor's cache.
    #[inline(always)]
    pub(crate) fn touch(&self, key: Key) {
        self.index.touch(self.keys.hash_ids(key));
    }

    /// Adds counts to a combination. Ids after the last column must be 0.
    ///
    /// # Errors
    /// Why the counts were refused. The rows are unchanged then, but can't be added to after [`Refused::OutOfMemory`].
    #[inline(always)]
    pub fn add(&mut self, key: Key, counts: Counts, may_repeat: bool) -> Result<Added, Refused> {
        let totals = self.totals.checked_add(counts).ok_or(Refused::SumOverflow)?;
        let hash = self.keys.hash_ids(key);
        let is_key = |row: u32| self.sums[row as usize].key == key;
        let added = match self.index.find(hash, is_key) {
            Some(_) if !may_repeat => return Err(Refused::Repeated),
            Some(row) => {
                // No row can overflow, because the total did not.
                self.sums[row as usize].counts.add(counts);
                Added::Again
            }
            None if self.sums.len() >= self.limits.groups => {
                let limit = self.limits.groups;
                return Err(Refused::TooManyGroups { limit });
            }
            None if self.bytes(self.sums.len() + 1) > self.limits.bytes
                && self.is_above_limit(key) =>
            {
                let limit = self.limits.bytes;
                return Err(Refused::TooManyBytes { limit });
            }
            None => {
                let Self { sums, keys, index, .. } = self;
                sums.try_reserve(1).map_err(|_| Refused::OutOfMemory)?;
                index
                    .insert(hash, |row| keys.hash_ids(sums[row as usize].key))
                    .ok_or(Refused::OutOfMemory)?;
                sums.push(Sum { key, counts });
                Added::New
            }
        };
        self.totals = totals;
        Ok(added)
    }

    /// About how many bytes all values so far and this many groups take. They are in memory, so the number fits in a
    /// `usize`.
    #[inline(always)]
    fn bytes(&self, groups: usize) -> usize {
        let values = self
            .interners
            .iter()
            .map(|interner| interner.bytes() + interner.len() * RowsLimits::PER_VALUE);
        values.sum::<usize>() + groups * RowsLimits::PER_GROUP
    }

    /// Whether the bytes with another group are above the limit. A few values may have been read ahead; they count
    /// only when their groups are added, so that the limit is exceeded by the same group however a body is cut.
    #[cold]
    fn is_above_limit(&self, key: Key) -> bool {
        let mut bytes = (self.sums.len() + 1) * RowsLimits::PER_GROUP;
        for (column, interner) in self.interners.iter().enumerate() {
            let ids = self.sums.iter().map(|sum| sum.key[column]);
            let values = ids.fold(key[column], u32::max) as usize + 1;
            bytes += interner.bytes_of_first(values) + values * RowsLimits::PER_VALUE;
        }
        bytes > self.limits.bytes
    }

    /// Whether there is memory to finish, as far as that can be known without finishing.
    ///
    /// # Errors
    /// [`Refused::OutOfMemory`].
    pub fn check_memory(&self) -> Result<(), Refused> {
        let bytes = self.bytes(self.sums.len());
        if bytes < MUCH {
            return Ok(());
        }
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Refused::OutOfMemory)
    }

    /// The rows in canonical form.
    #[must_use]
    pub fn finish(self) -> Rows {
        let Self { interners, sums, index, totals, .. } = self;
        // Freed here, so that the next steps can use its memory.
        drop(index);
        let width = interners.len();
        let mut dictionaries = Vec::with_capacity(width);
        let mut new_ids = Vec::with_capacity(width);
        for interner in interners {
            let (dictionary, ids) = interner.into_sorted();
            dictionaries.push(dictionary);
            new_ids.push(ids);
        }
        Rows::from_sums(dictionaries, &sums, &new_ids, totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are so many keys that some of their 32-bit hashes are equal.
    #[test]
    fn combinations_of_equal_hashes_are_told_apart() {
        let mut builder = RowsBuilder::new(0, RowsLimits::NONE, HashKeys::from_seed(1));
        let counts = Counts::default();
        for number in 0..300_000 {
            let key = [number / 1_000, number % 1_000, 0, 0];
            assert_eq!(builder.add(key, counts, false), Ok(Added::New));
        }
        for number in 0..300_000 {
            let key = [number / 1_000, number % 1_000, 0, 0];
            assert_eq!(builder.add(key, counts, false), Err(Refused::Repeated));
        }
    }
}
