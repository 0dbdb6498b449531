//! Gives numbers to distinct strings as they arrive.

use std::sync::Arc;

use crate::dictionary::{Dictionary, MOST_BYTES, sorted_places};
use crate::hash::HashKeys;
use crate::index::Index;
use crate::prefix::Prefix;

/// The initial capacity: enough for the few values that most dimensions have. It doubles, but never at the same value
/// as the capacity for sums or of the index, because growing each of them takes a while if there are a million values.
const SOME_VALUES: usize = 12;
const SOME_BYTES: usize = 256;

/// The size of a segment of text, as a power of two.
const SEGMENT_BITS: u32 = 20;
const SEGMENT: usize = 1 << SEGMENT_BITS;

/// Gives each distinct string an id, in the order of their first appearance.
#[derive(Debug)]
pub(crate) struct Interner {
    values: Vec<Value>,
    texts: Texts,
    /// With three slots for each value, it does not grow at the same number as the index of rows.
    index: Index<3>,
    keys: HashKeys,
}

/// A value: where it starts, and its length and first bytes, which are enough to compare most
/// values. The hash is kept, because a growing index would otherwise read all values again.
#[derive(Debug)]
struct Value {
    prefix: Prefix,
    start: u32,
    hash: u32,
}

/// The values one after the other, in segments: half a gigabyte in one piece would have to be copied while it grows.
#[derive(Debug)]
struct Texts {
    full: Vec<String>,
    last: String,
    bytes: usize,
}

impl Texts {
    fn new() -> Self {
        Self { full: Vec::new(), last: String::with_capacity(SOME_BYTES), bytes: 0 }
    }

    /// Adds a value and returns its start; `None` if there is no room for it.
    fn push(&mut self, value: &str) -> Option<u32> {
        if self.last.len() + value.len() > SEGMENT && !self.last.is_empty() {
            let mut next = String::new();
            next.try_reserve_exact(SEGMENT).ok()?;
            self.full.try_reserve(1).ok()?;
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        self.last.try_reserve(value.len()).ok()?;
        let start = (self.full.len() << SEGMENT_BITS) + self.last.len();
        self.last.push_str(value);
        self.bytes += value.len();
        u32::try_from(start).ok()
    }

    fn value(&self, value: &Value) -> &str {
        let start = value.start as usize % SEGMENT;
        let segment = self.full.get(value.start as usize / SEGMENT);
        &segment.unwrap_or(&self.last)[start..start + value.prefix.length as usize]
    }
}

impl Interner {
    /// An interner without values.
    pub(crate) fn new(keys: HashKeys) -> Self {
        Self {
            values: Vec::with_capacity(SOME_VALUES),
            texts: Texts::new(),
            index: Index::default(),
            keys,
        }
    }

    /// The id of a value; `None` when the dictionary is full, or there is no memory for it.
    pub(crate) fn intern(&mut self, value: &str) -> Option<u32> {
        self.intern_with(Prefix::of(value.as_bytes()), value.as_bytes())
    }

    /// The same for the value at the start of `bytes`, which must be UTF-8. It is faster if more
    /// bytes follow the value.
    #[inline(always)]
    pub(crate) fn intern_in(&mut self, bytes: &[u8], length: usize) -> Option<u32> {
        self.intern_with(Prefix::of_start(bytes, length), &bytes[..length])
    }

    #[inline(always)]
    fn intern_with(&mut self, prefix: Prefix, value: &[u8]) -> Option<u32> {
        let hash = self.keys.hash(value);
        let equals = |id: u32| {
            let same = self.values[id as usize].prefix == prefix;
            same && (value.len() <= Prefix::BYTES || self.is_value(id, value))
        };
        match self.index.find(hash, equals) {
            Some(id) => Some(id),
            None => self.add(prefix, hash, value),
        }
    }

    #[cold]
    fn is_value(&self, id: u32, value: &[u8]) -> bool {
        self.texts.value(&self.values[id as usize]).as_bytes() == value
    }

    #[cold]
    fn add(&mut self, prefix: Prefix, hash: u32, value: &[u8]) -> Option<u32> {
        let value = str::from_utf8(value).ok()?;
        if !self.has_room(value.len()) {
            return None;
        }
        let id = u32::try_from(self.values.len()).ok()?;
        self.values.try_reserve(1).ok()?;
        let start = self.texts.push(value)?;
        self.values.push(Value { prefix, start, hash });
        let Self { values, index, .. } = self;
        index.insert(hash, |id| values[id as usize].hash)?;
        Some(id)
    }

    /// Whether a value of that length would still fit into a dictionary.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.texts.bytes + length <= MOST_BYTES
    }

    /// How many values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The bytes of all values.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes
    }

    /// The bytes of the first `values` values, in the order of their ids.
    pub(crate) fn bytes_of_first(&self, values: usize) -> usize {
        let lengths = self.values.iter().map(|value| value.prefix.length as usize);
        lengths.take(values).sum()
    }

    /// The sorted dictionary, and the new id of each old one.
    pub(crate) fn into_sorted(self) -> (Arc<Dictionary>, Vec<u32>) {
        let values: Vec<&str> = self.values.iter().map(|value| self.texts.value(value)).collect();
        let mut new_ids = vec![0; values.len()];
        let mut sorted = Dictionary::with_capacity(self.texts.bytes, values.len());
        for (new_id, place) in (0..).zip(sorted_places(&values)) {
            new_ids[place as usize] = new_id;
            sorted.push(values[place as usize]);
        }
        (Arc::new(sorted), new_ids)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn distinct_values_are_sorted_and_found_by_their_new_ids(
            values in prop_oneof![
                prop::collection::vec("[a-cé]{0,3}", 0..60),
                prop::collection::vec("[a-cé]{120,140}", 0..20),
            ],
        ) {
            let mut interner = Interner::new(HashKeys::from_seed(1));
            let ids: Vec<Option<u32>> = values.iter().map(|value| interner.intern(value)).collect();
            let (dictionary, new_ids) = interner.into_sorted();
            let expected: BTreeSet<&str> = values.iter().map(String::as_str).collect();
            prop_assert!(dictionary.values().eq(expected));
            for (value, id) in values.iter().zip(ids) {
                let id = id.expect("there is room");
                prop_assert_eq!(dictionary.value(new_ids[id as usize]), value);
            }
        }
    }

    #[test]
    fn values_of_any_length_are_kept_whole() {
        let mut interner = Interner::new(HashKeys::from_seed(1));
        let lengths = [0, 700_000, 1, 400_000, SEGMENT, 0, 3 * SEGMENT, 5, SEGMENT - 5, 1];
        let value = |number: usize, length: usize| {
            let mut value = number.to_string();
            value += &"x".repeat(length);
            value
        };
        for (number, length) in lengths.into_iter().enumerate() {
            assert_eq!(interner.intern(&value(number, length)), Some(number as u32));
        }
        for (number, length) in lengths.into_iter().enumerate() {
            assert_eq!(interner.intern(&value(number, length)), Some(number as u32));
        }
        let (dictionary, new_ids) = interner.into_sorted();
        for (number, length) in lengths.into_iter().enumerate() {
            assert_eq!(dictionary.value(new_ids[number]), value(number, length));
        }
    }

    /// There are so many values that some of their 32-bit hashes are equal.
    #[test]
    fn values_of_equal_hashes_are_told_apart() {
        const VALUES: u32 = 300_000;
        let mut interner = Interner::new(HashKeys::from_seed(1));
        // The same length, and the same first bytes.
        let value = |number: u32| format!("{}{number:06}", "x".repeat(Prefix::BYTES));
        let hashes: HashSet<u32> = (0..VALUES)
            .map(|number| HashKeys::from_seed(1).hash(value(number).as_bytes()))
            .collect();
        assert!(hashes.len() < VALUES as usize, "some hashes are equal");
        for number in 0..VALUES {
            let id = interner.intern(&value(number));
            assert_eq!(id, Some(number));
        }
    }
}
