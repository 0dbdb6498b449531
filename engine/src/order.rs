//! Packs the ids of a key into one number, and sorts rows by these numbers.

use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::key::{Key, MOST_COLUMNS};

/// How many bits of a packed key each column takes; this depends on the size of its dictionary. The
/// first column has the highest bits, so that packed keys sort like rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    bits: [u32; MOST_COLUMNS],
}

impl Packing {
    pub(crate) fn of(dictionaries: &[Arc<Dictionary>]) -> Self {
        let mut bits = [0; MOST_COLUMNS];
        for (bits, dictionary) in bits.iter_mut().zip(dictionaries) {
            *bits = usize::BITS - dictionary.len().saturating_sub(1).leading_zeros();
        }
        Self { bits }
    }

    /// Sorts rows by their keys; rows with equal keys keep their order.
    pub(crate) fn sort(&self, keys: impl ExactSizeIterator<Item = Key>) -> Sorted {
        let rows = keys.len();
        let row_bits = usize::BITS - rows.leading_zeros();
        let key_bits: u32 = self.bits.iter().sum();
        if row_bits + key_bits > u64::BITS {
            let mut pairs: Vec<_> = keys.map(|key| self.pack(key)).zip(0..).collect();
            pairs.sort_unstable();
            return self.sorted(Keys::Pairs(pairs));
        }
        let word = |(row, key)| self.pack_in_word(key) << row_bits | row as u64;
        let mut words: Vec<u64> = keys.enumerate().map(word).collect();
        sort_by_bits(&mut words, row_bits, key_bits);
        self.sorted(Keys::Words(words, row_bits))
    }

    fn sorted(&self, keys: Keys) -> Sorted {
        let packing = *self;
        Sorted { packing, keys }
    }

    fn pack(&self, key: Key) -> u128 {
        let ids = key.into_iter().zip(self.bits);
        ids.fold(0, |packed, (id, bits)| packed << bits | u128::from(id))
    }

    /// The same, if 64 bits are enough.
    #[inline]
    fn pack_in_word(&self, key: Key) -> u64 {
        let ids = key.into_iter().zip(self.bits);
        ids.fold(0, |packed, (id, bits)| packed << bits | u64::from(id))
    }

    /// The position of the lowest bit of a column's id.
    fn shift(&self, column: usize) -> u32 {
        self.bits[column + 1..].iter().sum()
    }

    fn mask(&self, column: usize) -> u32 {
        ((1_u64 << self.bits[column]) - 1) as u32
    }
}

/// Rows in the order of their keys.
pub(crate) struct Sorted {
    packing: Packing,
    keys: Keys,
}

/// Packed keys, each with the number of its row.
enum Keys {
    /// Each pair in one word, with the row's number in this many of the lowest bits.
    Words(Vec<u64>, u32),
    Pairs(Vec<(u128, usize)>),
}

impl Sorted {
    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        match &self.keys {
            Keys::Words(words, _) => words.len(),
            Keys::Pairs(pairs) => pairs.len(),
        }
    }

    /// Calls `visit` with each row's number, with what `fetch` returns for it, and with whether its key
    /// differs from the key of the row before.
    #[inline]
    pub(crate) fn visit<T: Copy + Default>(
        &self,
        fetch: impl Fn(usize) -> T,
        visit: impl FnMut(usize, T, bool),
    ) {
        match &self.keys {
            Keys::Words(words, row_bits) => {
                let row = (1 << row_bits) - 1;
                let split = |word: &u64| (word >> row_bits, (word & row) as usize);
                visit_each(words, split, fetch, visit);
            }
            Keys::Pairs(pairs) => visit_each(pairs, |pair| *pair, fetch, visit),
        }
    }

    /// Keeps only the first of the rows with equal keys.
    pub(crate) fn dedup(&mut self) {
        match &mut self.keys {
            Keys::Words(words, row_bits) => words.dedup_by_key(|word| *word >> *row_bits),
            Keys::Pairs(pairs) => pairs.dedup_by_key(|(key, _)| *key),
        }
    }

    /// The ids of a column.
    pub(crate) fn ids(&self, column: usize) -> Vec<u32> {
        let (shift, mask) = (self.packing.shift(column), self.packing.mask(column));
        match &self.keys {
            Keys::Words(words, row_bits) => {
                let ids = words.iter().map(|word| (word >> (row_bits + shift)) as u32);
                ids.map(|id| id & mask).collect()
            }
            Keys::Pairs(pairs) => {
                let ids = pairs.iter().map(|(key, _)| (key >> shift) as u32);
                ids.map(|id| id & mask).collect()
            }
        }
    }
}

/// How many rows are fetched before they are visited. They are scattered in memory, and a processor that fetches
/// several in a row waits for all of them at the same time.
const FETCHED: usize = 16;

/// Visits sorted entries. `split` splits each into key and row.
#[inline]
fn visit_each<E, K: Copy + PartialEq, T: Copy + Default>(
    entries: &[E],
    split: impl Fn(&E) -> (K, usize),
    fetch: impl Fn(usize) -> T,
    mut visit: impl FnMut(usize, T, bool),
) {
    let mut last = None;
    for entries in entries.chunks(FETCHED) {
        let mut fetched = [T::default(); FETCHED];
        for (entry, fetched) in entries.iter().zip(&mut fetched) {
            *fetched = fetch(split(entry).1);
        }
        for (entry, fetched) in entries.iter().zip(fetched) {
            let (key, row) = split(entry);
            visit(row, fetched, last.replace(key) != Some(key));
        }
    }
}

/// For fewer words than this, a comparison sort is faster than a radix sort.
const FEW: usize = 256;

/// By how many bits one pass sorts.
const DIGIT_BITS: u32 = 11;

/// A radix sort by `bits` bits from bit `from` on. Words that are equal in those bits must already
/// be sorted by the bits below.
fn sort_by_bits(words: &mut Vec<u64>, from: u32, bits: u32) {
    if words.is_sorted() {
        return;
    }
    if words.len() < FEW {
        words.sort_unstable();
        return;
    }
    let mut sorted = vec![0; words.len()];
    for shift in (from..from + bits).step_by(DIGIT_BITS as usize) {
        let digit = |word: u64| (word >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut places = [0_usize; 1 << DIGIT_BITS];
        for word in &*words {
            places[digit(*word)] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for word in &*words {
            let place = &mut places[digit(*word)];
            sorted[*place] = *word;
            *place += 1;
        }
        std::mem::swap(words, &mut sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dictionary(values: usize) -> Arc<Dictionary> {
        let mut dictionary = Dictionary::default();
        for value in 0..values {
            dictionary.push(&format!("{value:09}")).expect("there is room");
        }
        Arc::new(dictionary)
    }

    /// The sizes of dictionaries, and rows of ids in them.
    fn any_rows() -> impl Strategy<Value = (Vec<usize>, Vec<Key>)> {
        let sizes =
            prop::collection::vec(prop_oneof![1..4_usize, 1..70_000_usize], 0..=MOST_COLUMNS);
        (sizes, prop::collection::vec(any::<[u32; MOST_COLUMNS]>(), 0..600)).prop_map(
            |(sizes, mut rows)| {
                for row in &mut rows {
                    for (column, id) in row.iter_mut().enumerate() {
                        *id %= sizes.get(column).map_or(1, |size| *size as u32);
                    }
                }
                (sizes, rows)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_are_visited_in_the_order_of_their_ids((sizes, rows) in any_rows()) {
            let dictionaries: Vec<_> = sizes.iter().map(|size| dictionary(*size)).collect();
            let packing = Packing::of(&dictionaries);
            let mut sorted = packing.sort(rows.iter().copied());
            let mut visited: Vec<(Key, usize)> = Vec::new();
            sorted.visit(|row| rows[row], |row, key, is_new| {
                let before = visited.last().map(|(key, _)| *key);
                assert_eq!(is_new, before != Some(key));
                visited.push((key, row));
            });
            let mut expected: Vec<(Key, usize)> = rows.iter().copied().zip(0..).collect();
            expected.sort();
            prop_assert_eq!(visited, &expected[..]);
            sorted.dedup();
            expected.dedup_by_key(|(key, _)| *key);
            prop_assert_eq!(sorted.len(), expected.len());
            for column in 0..sizes.len() {
                let ids: Vec<u32> = expected.iter().map(|(key, _)| key[column]).collect();
                prop_assert_eq!(sorted.ids(column), ids);
            }
        }
    }
}
