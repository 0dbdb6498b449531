//! Keys of several ids as one number, and rows in the order of such numbers.

use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::rows::{Key, MOST_COLUMNS};

/// How many bits of a packed key each column takes: what its dictionary needs. The first column
/// has the highest ones, so that packed keys sort as rows do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    width: usize,
    bits: [u32; MOST_COLUMNS],
}

impl Packing {
    pub(crate) fn of(dictionaries: &[Arc<Dictionary>]) -> Self {
        let mut bits = [0; MOST_COLUMNS];
        for (bits, dictionary) in bits.iter_mut().zip(dictionaries) {
            *bits = usize::BITS - dictionary.len().saturating_sub(1).leading_zeros();
        }
        Self {
            width: dictionaries.len(),
            bits,
        }
    }

    #[inline]
    pub(crate) fn pack(&self, ids: impl Iterator<Item = u32>) -> u128 {
        self.bits
            .iter()
            .zip(ids)
            .fold(0, |packed, (bits, id)| packed << bits | u128::from(id))
    }

    /// Adds the ids of a packed key to columns.
    #[inline]
    fn unpack(&self, mut packed: u128) -> Key {
        let mut key = Key::default();
        for (id, bits) in key.iter_mut().zip(&self.bits).take(self.width).rev() {
            *id = packed as u32 & ((1_u64 << bits) - 1) as u32;
            packed >>= bits;
        }
        key
    }

    /// Gives what is fetched for every row, with the row's key, in the order of the keys; for equal
    /// keys in the order of the rows.
    pub(crate) fn visit_sorted<T: Copy + Default>(
        &self,
        keys: impl ExactSizeIterator<Item = u128>,
        fetch: impl Fn(usize) -> T,
        mut visit: impl FnMut(Key, T),
    ) {
        let rows = keys.len();
        let row_bits = usize::BITS - rows.leading_zeros();
        let key_bits: u32 = self.bits.iter().sum();
        if row_bits + key_bits <= u64::BITS {
            let word = |(row, key): (usize, u128)| (key as u64) << row_bits | row as u64;
            let mut words: Vec<u64> = keys.enumerate().map(word).collect();
            sort_by_bits(&mut words, row_bits, key_bits);
            for words in words.chunks(AT_ONCE) {
                // Rows lie anywhere in memory, so several are fetched before any is waited for.
                let mut fetched = [T::default(); AT_ONCE];
                for (fetched, word) in fetched.iter_mut().zip(words) {
                    *fetched = fetch((word & ((1 << row_bits) - 1)) as usize);
                }
                for (fetched, word) in fetched.iter().zip(words) {
                    visit(self.unpack(u128::from(word >> row_bits)), *fetched);
                }
            }
        } else {
            let mut pairs: Vec<(u128, usize)> = keys.zip(0..).collect();
            pairs.sort_unstable();
            for (key, row) in pairs {
                visit(self.unpack(key), fetch(row));
            }
        }
    }
}

/// How many rows are fetched in one go.
const AT_ONCE: usize = 32;

/// Below so many words, comparing is faster than counting.
const FEW: usize = 256;

/// How many bits are sorted by in one pass.
const DIGIT_BITS: u32 = 11;

/// Sorts words whose bits below `from` are in order where the others are equal: a radix sort of so
/// many bits from there on.
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
            dictionary
                .push(&format!("{value:09}"))
                .expect("there is room");
        }
        Arc::new(dictionary)
    }

    /// The sizes of dictionaries, and rows of ids in them.
    fn any_rows() -> impl Strategy<Value = (Vec<usize>, Vec<Key>)> {
        let sizes =
            prop::collection::vec(prop_oneof![1..4_usize, 1..70_000_usize], 0..=MOST_COLUMNS);
        (
            sizes,
            prop::collection::vec(any::<[u32; MOST_COLUMNS]>(), 0..600),
        )
            .prop_map(|(sizes, mut rows)| {
                for row in &mut rows {
                    for (column, id) in row.iter_mut().enumerate() {
                        *id %= sizes.get(column).map_or(1, |size| *size as u32);
                    }
                }
                (sizes, rows)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_are_visited_in_the_order_of_their_ids((sizes, rows) in any_rows()) {
            let dictionaries: Vec<_> = sizes.iter().map(|size| dictionary(*size)).collect();
            let packing = Packing::of(&dictionaries);
            let keys = rows.iter().map(|row| packing.pack(row.iter().copied().take(sizes.len())));
            let mut visited = Vec::new();
            packing.visit_sorted(keys, |row| row, |key, row| visited.push((key, row)));
            let mut expected: Vec<(Key, usize)> = rows.iter().copied().zip(0..).collect();
            expected.sort();
            prop_assert_eq!(visited, expected);
        }
    }
}
