//! The first bytes of a value, which nearly always distinguish it from all other values.

use crate::text::{BLOCK, first_bytes};

/// The length of a value and its first bytes, padded with zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) words: [u64; 4],
    pub(crate) length: u32,
}

impl Prefix {
    /// The most bytes that it holds.
    pub(crate) const BYTES: usize = BLOCK;

    pub(crate) fn of(value: &[u8]) -> Self {
        let mut block = [0; Self::BYTES];
        let length = value.len().min(Self::BYTES);
        block[..length].copy_from_slice(&value[..length]);
        Self::of_block(&block, value.len())
    }

    /// The prefix of the value that `bytes` start with.
    #[inline(always)]
    pub(crate) fn of_start(bytes: &[u8], length: usize) -> Self {
        match bytes.first_chunk() {
            Some(block) => {
                let mut prefix = Self::of_block(block, length);
                let Self { words: mask, .. } = Self::of_block(&first_bytes(length), length);
                for (word, mask) in prefix.words.iter_mut().zip(mask) {
                    *word &= mask;
                }
                prefix
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_holds_the_first_bytes(
            value in prop::collection::vec(any::<u8>(), 0..80),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut first = [0; Prefix::BYTES];
            let length = value.len().min(Prefix::BYTES);
            first[..length].copy_from_slice(&value[..length]);
            let prefix = Prefix::of_block(&first, value.len());
            prop_assert_eq!(Prefix::of(&value), prefix);
            let bytes = [value.clone(), rest].concat();
            prop_assert_eq!(Prefix::of_start(&bytes, value.len()), prefix);
        }
    }
}
