//! Distinct strings by number.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// The most text of one dictionary: half of what a WebAssembly string, or an Arrow string column,
/// can hold.
pub(super) const MOST_BYTES: usize = 1 << 30;

/// The distinct values of one dimension, sorted by their UTF-8 bytes; ids count from 0.
///
/// The layout is Arrow's: one text, and where each value ends in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    bytes: String,
    offsets: Vec<u32>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            bytes: String::new(),
            offsets: vec![0],
        }
    }
}

impl Dictionary {
    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value with that id, which must be one of this dictionary.
    pub(super) fn value(&self, id: u32) -> &str {
        let id = id as usize;
        &self.bytes[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// The bytes of a value: without a look for the edges of characters.
    #[inline]
    fn value_bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        &self.bytes.as_bytes()[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// The values in the order of their ids.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.offsets
            .windows(2)
            .map(|edges| &self.bytes[edges[0] as usize..edges[1] as usize])
    }

    /// All values, end to end.
    #[must_use]
    pub fn bytes(&self) -> &str {
        &self.bytes
    }

    /// Where each value starts in `bytes`, and where the last one ends: one more than `len`.
    #[must_use]
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Adds a value; `None` when there is no room for it.
    fn push(&mut self, value: &str) -> Option<u32> {
        let end = self.bytes.len() + value.len();
        if end > MOST_BYTES {
            return None;
        }
        let end = u32::try_from(end).ok()?;
        let id = u32::try_from(self.len()).ok()?;
        self.bytes.push_str(value);
        self.offsets.push(end);
        Some(id)
    }
}

/// Gives each distinct string an id, in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    values: Dictionary,
    index: HashTable<u32>,
    hasher: FixedState,
}

impl Interner {
    /// The id of a value; `None` when the dictionary is full.
    pub(crate) fn intern(&mut self, value: &str) -> Option<u32> {
        self.intern_bytes(value.as_bytes())
    }

    /// The id of a value; `None` when the dictionary is full, or the value is not UTF-8. What
    /// equals a value that is there was found to be UTF-8 when that one came.
    #[inline]
    pub(crate) fn intern_bytes(&mut self, value: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(value);
        let equals = |id: &u32| self.values.value_bytes(*id) == value;
        if let Some(id) = self.index.find(hash, equals) {
            return Some(*id);
        }
        let id = self.values.push(str::from_utf8(value).ok()?)?;
        let (values, hasher) = (&self.values, &self.hasher);
        self.index
            .insert_unique(hash, id, |id| hasher.hash_one(values.value_bytes(*id)));
        Some(id)
    }

    /// The sorted dictionary, and the new id of each old one.
    pub(crate) fn into_sorted(self) -> (Dictionary, Vec<u32>) {
        let mut order: Vec<u32> = (0..).take(self.values.len()).collect();
        order.sort_unstable_by_key(|id| self.values.value(*id));
        let mut ranks = vec![0; order.len()];
        let mut sorted = Dictionary::default();
        sorted.bytes.reserve_exact(self.values.bytes.len());
        sorted.offsets.reserve_exact(order.len());
        for (rank, id) in (0..).zip(&order) {
            ranks[*id as usize] = rank;
            sorted.push(self.values.value(*id));
        }
        (sorted, ranks)
    }
}
