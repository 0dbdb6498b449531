//! Gives numbers to distinct strings as they arrive.

use std::sync::Arc;

use crate::dictionary::{Dictionary, MOST_BYTES, sorted_places};
use crate::hash::HashKeys;
use crate::head::Head;
use crate::index::Index;

/// The room at first: enough for the few values that most dimensions have.
const SOME_VALUES: usize = 16;
const SOME_BYTES: usize = 256;

/// Gives each distinct string an id, in the order of their first appearance.
#[derive(Debug)]
pub(crate) struct Interner {
    values: Vec<Value>,
    /// The values end to end.
    text: String,
    index: Index,
    keys: HashKeys,
}

/// A value: where it starts, and its length and first bytes, which are enough to compare most
/// values.
#[derive(Debug)]
struct Value {
    head: Head,
    start: u32,
}

impl Value {
    fn of<'a>(&self, text: &'a str) -> &'a str {
        let start = self.start as usize;
        &text[start..start + self.head.length as usize]
    }
}

impl Interner {
    /// An interner without values.
    pub(crate) fn new(keys: HashKeys) -> Self {
        Self {
            values: Vec::with_capacity(SOME_VALUES),
            text: String::with_capacity(SOME_BYTES),
            index: Index::default(),
            keys,
        }
    }

    /// The id of a value; `None` when the dictionary is full.
    pub(crate) fn intern(&mut self, value: &str) -> Option<u32> {
        self.intern_with(Head::of(value.as_bytes()), value.as_bytes())
    }

    /// The same for the value at the start of `bytes`, which must be UTF-8. It is faster if more
    /// bytes follow the value.
    #[inline(always)]
    pub(crate) fn intern_in(&mut self, bytes: &[u8], length: usize) -> Option<u32> {
        self.intern_with(Head::of_start(bytes, length), &bytes[..length])
    }

    #[inline(always)]
    fn intern_with(&mut self, head: Head, value: &[u8]) -> Option<u32> {
        let hash = self.keys.hash(value);
        let equals = |id: u32| {
            let same = self.values[id as usize].head == head;
            same && (value.len() <= Head::BYTES || self.is_value(id, value))
        };
        match self.index.find(hash, equals) {
            Some(id) => Some(id),
            None => self.add(head, hash, value),
        }
    }

    #[cold]
    fn is_value(&self, id: u32, value: &[u8]) -> bool {
        self.values[id as usize].of(&self.text).as_bytes() == value
    }

    #[cold]
    fn add(&mut self, head: Head, hash: u32, value: &[u8]) -> Option<u32> {
        let value = str::from_utf8(value).ok()?;
        let start = self.text.len();
        if start + value.len() > MOST_BYTES {
            return None;
        }
        let id = u32::try_from(self.values.len()).ok()?;
        self.text.push_str(value);
        self.values.push(Value {
            head,
            start: start as u32,
        });
        let Self {
            values,
            text,
            index,
            keys,
        } = self;
        index.insert(hash, |id| {
            let value = &values[id as usize];
            keys.hash(value.of(text).as_bytes())
        });
        Some(id)
    }

    /// The sorted dictionary, and the new id of each old one.
    pub(crate) fn into_sorted(self) -> (Arc<Dictionary>, Vec<u32>) {
        let values: Vec<&str> = self
            .values
            .iter()
            .map(|value| value.of(&self.text))
            .collect();
        let mut new_ids = vec![0; values.len()];
        let mut sorted = Dictionary::with_capacity(self.text.len(), values.len());
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

    /// So many values that hashes of 32 bits are bound to be equal, a few of them.
    #[test]
    fn values_of_equal_hashes_are_told_apart() {
        const VALUES: u32 = 300_000;
        let mut interner = Interner::new(HashKeys::from_seed(1));
        // The same length, and the same first bytes.
        let value = |number: u32| format!("{}{number:06}", "x".repeat(Head::BYTES));
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
