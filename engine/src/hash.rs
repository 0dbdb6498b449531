//! Hashes under keys that the host may choose.
//!
//! Values come from whoever sends events, so they may be made to collide. Both factors of every
//! product are mixed with a key: without the keys no such values can be found.

use crate::key::Key;
use crate::text::{BLOCK, first_bytes};

/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The keys of a hash. The same seed gives the same keys, and no result depends on them but the
/// time it takes.
#[derive(Clone, Copy, Debug)]
pub struct HashKeys([u64; 4]);

impl HashKeys {
    /// The keys of a seed, which a host draws at random where values come from strangers.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            // SplitMix64: neighbouring seeds give unrelated keys.
            state = state.wrapping_add(ODD);
            let bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ (bits >> 31)
        }))
    }

    /// The hash of a value.
    #[must_use]
    pub fn hash(&self, value: &[u8]) -> u32 {
        self.hash_from(&Head::of(value), value)
    }

    /// The hash of a value whose head is at hand.
    #[inline]
    pub(crate) fn hash_from(&self, head: &Head, value: &[u8]) -> u32 {
        let [a, b, c, d] = head.words;
        let first = self.mix_first(a, b);
        let second = self.mix_second(c, d);
        let mut hash = first ^ second;
        if value.len() > Head::BYTES {
            hash = self.mix_rest(hash, value);
        }
        // No byte can make up for the length, as it comes after them.
        hash ^= u64::from(head.length).wrapping_mul(ODD);
        (hash >> 32) as u32
    }

    /// The hash of the ids of a key.
    #[inline]
    pub(crate) fn hash_ids(&self, key: Key) -> u32 {
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let hash = self.mix_first(word(key[0], key[1]), word(key[2], key[3]));
        (hash >> 32) as u32
    }

    #[inline]
    fn mix_first(&self, a: u64, b: u64) -> u64 {
        folded_product(a ^ self.0[0], b ^ self.0[1])
    }

    #[inline]
    fn mix_second(&self, a: u64, b: u64) -> u64 {
        folded_product(a ^ self.0[2], b ^ self.0[3])
    }

    /// What follows the head, 16 bytes at a time; the last ones may count twice.
    #[cold]
    fn mix_rest(&self, mut hash: u64, value: &[u8]) -> u64 {
        let (blocks, _) = value[Head::BYTES..].as_chunks();
        for block in blocks.iter().chain(value.last_chunk()) {
            let both = u128::from_le_bytes(*block);
            hash = self.mix_second(hash ^ both as u64, (both >> 64) as u64);
        }
        hash
    }
}

/// The length of a value and its first bytes, with zeros for those that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) words: [u64; 4],
    pub(crate) length: u32,
}

impl Head {
    /// How many bytes it has room for.
    pub(crate) const BYTES: usize = BLOCK;

    pub(crate) fn of(value: &[u8]) -> Self {
        let mut block = [0; Self::BYTES];
        let length = value.len().min(Self::BYTES);
        block[..length].copy_from_slice(&value[..length]);
        Self::of_block(&block, value.len())
    }

    /// The head of the value that `bytes` start with.
    #[inline(always)]
    pub(crate) fn of_start(bytes: &[u8], length: usize) -> Self {
        match bytes.first_chunk() {
            Some(block) => {
                let mut head = Self::of_block(block, length);
                let Self { words: mask, .. } = Self::of_block(&first_bytes(length), length);
                for (word, mask) in head.words.iter_mut().zip(mask) {
                    *word &= mask;
                }
                head
            }
            None => Self::of(&bytes[..length]),
        }
    }

    #[inline(always)]
    fn of_block(block: &[u8; Self::BYTES], length: usize) -> Self {
        let (words, _) = block.as_chunks();
        Self {
            words: [words[0], words[1], words[2], words[3]].map(u64::from_le_bytes),
            length: length as u32,
        }
    }
}

/// Both halves of a product, folded into one.
#[inline]
fn folded_product(a: u64, b: u64) -> u64 {
    if cfg!(target_arch = "wasm32") {
        return folded_product_by_halves(a, b);
    }
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The same where products have at most 64 bits, and a larger one would be a call.
#[inline]
fn folded_product_by_halves(a: u64, b: u64) -> u64 {
    const LOW: u64 = 0xFFFF_FFFF;
    let [(a_low, a_high), (b_low, b_high)] = [a, b].map(|factor| (factor & LOW, factor >> 32));
    let low = a_low * b_low;
    let middle = a_high * b_low + (low >> 32);
    let other = a_low * b_high + (middle & LOW);
    let high = a_high * b_high + (middle >> 32) + (other >> 32);
    (low & LOW | other << 32) ^ high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_by_halves_are_the_same(a: u64, b: u64) {
            prop_assert_eq!(folded_product_by_halves(a, b), folded_product(a, b));
            let most = folded_product_by_halves(a, u64::MAX);
            prop_assert_eq!(most, folded_product(a, u64::MAX));
        }

        #[test]
        fn a_head_holds_the_first_bytes(
            value in prop::collection::vec(any::<u8>(), 0..80),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut first = [0; Head::BYTES];
            let length = value.len().min(Head::BYTES);
            first[..length].copy_from_slice(&value[..length]);
            let head = Head::of_block(&first, value.len());
            prop_assert_eq!(Head::of(&value), head);
            let bytes = [value.clone(), rest].concat();
            prop_assert_eq!(Head::of_start(&bytes, value.len()), head);
        }
    }

    #[test]
    fn no_byte_makes_up_for_the_length() {
        let keys = HashKeys::from_seed(1);
        let hashes: std::collections::HashSet<u32> = (64..80_u8)
            .map(|length| {
                let mut value = vec![b'a'; usize::from(length)];
                value[24] ^= length;
                keys.hash(&value)
            })
            .collect();
        assert_eq!(hashes.len(), 16);
    }

    #[test]
    fn every_byte_and_the_seed_count() {
        let value = [b'a'; 70];
        let keys = HashKeys::from_seed(1);
        for length in 0..value.len() {
            let hash = keys.hash(&value[..length]);
            assert_ne!(hash, keys.hash(&value[..=length]), "the length counts");
            assert_ne!(
                hash,
                HashKeys::from_seed(2).hash(&value[..length]),
                "the seed counts"
            );
            for at in 0..length {
                let mut other = value[..length].to_vec();
                other[at] = b'b';
                assert_ne!(hash, keys.hash(&other), "byte {at} of {length} counts");
            }
        }
    }
}
