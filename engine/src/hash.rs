//! Hashes under keys that the host may choose.
//!
//! Values come from whoever sends events, so they may be made to collide. Both factors of every
//! product are mixed with a key: without the keys no such values can be found.

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
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ (bits >> 31)
        }))
    }

    /// The hash of a value.
    #[must_use]
    pub fn hash(&self, value: &[u8]) -> u32 {
        self.hash_from(Head::of(value), value)
    }

    /// The hash of a value whose head is at hand.
    #[inline]
    pub(crate) fn hash_from(&self, head: Head, value: &[u8]) -> u32 {
        let hash = self.mix_first(head.bytes, head.length);
        let hash = match value.get(16..) {
            None | Some([]) => hash,
            Some(rest) => self.mix_rest(hash, value, rest),
        };
        (hash >> 32) as u32
    }

    /// The hash of a number of 128 bits.
    #[inline]
    pub(crate) fn hash_number(&self, number: u128) -> u32 {
        (self.mix_first(number, 0) >> 32) as u32
    }

    #[inline]
    fn mix_first(&self, bytes: u128, length: u32) -> u64 {
        let low = bytes as u64 ^ self.0[0];
        let high = (bytes >> 64) as u64 ^ self.0[1] ^ u64::from(length);
        folded_product(low, high)
    }

    /// What follows the first 16 bytes, 16 at a time; the last ones may count twice.
    #[inline]
    fn mix_rest(&self, mut hash: u64, value: &[u8], rest: &[u8]) -> u64 {
        let (blocks, _) = rest.as_chunks();
        for block in blocks.iter().chain(value.last_chunk()) {
            let both = u128::from_le_bytes(*block);
            let (low, high) = (both as u64, (both >> 64) as u64);
            hash = folded_product(hash ^ low ^ self.0[2], high ^ self.0[3]);
        }
        hash
    }
}

/// The length of a value and its first bytes, with zeros for those that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) bytes: u128,
    pub(crate) length: u32,
}

impl Head {
    #[inline]
    pub(crate) fn of(value: &[u8]) -> Self {
        // Two reads that overlap, of which the second is moved to where its new bytes belong.
        let bytes = match (
            value.first_chunk(),
            value.first_chunk(),
            value.first_chunk(),
        ) {
            (Some(first), _, _) => u128::from_le_bytes(*first),
            (_, Some(first), _) => {
                let last = value
                    .last_chunk()
                    .map_or(0, |last| u64::from_le_bytes(*last));
                let last = u128::from(last) << (8 * (value.len() - 8));
                u128::from(u64::from_le_bytes(*first)) | last
            }
            (_, _, Some(first)) => {
                let last = value
                    .last_chunk()
                    .map_or(0, |last| u32::from_le_bytes(*last));
                let last = u128::from(last) << (8 * (value.len() - 4));
                u128::from(u32::from_le_bytes(*first)) | last
            }
            _ => value
                .iter()
                .rev()
                .fold(0, |bytes, byte| bytes << 8 | u128::from(*byte)),
        };
        Self {
            bytes,
            length: value.len() as u32,
        }
    }
}

/// Both halves of a product, folded into one.
#[cfg(target_pointer_width = "64")]
#[inline]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Like it, of the products that a machine of 32 bits has.
#[cfg(not(target_pointer_width = "64"))]
#[inline]
fn folded_product(a: u64, b: u64) -> u64 {
    let crossed = (a & 0xFFFF_FFFF).wrapping_mul(b >> 32);
    let other = (a >> 32).wrapping_mul(b & 0xFFFF_FFFF);
    crossed ^ other.rotate_right(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_holds_the_first_bytes(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut first = [0; 16];
            let length = value.len().min(16);
            first[..length].copy_from_slice(&value[..length]);
            let head = Head::of(&value);
            prop_assert_eq!(head.bytes, u128::from_le_bytes(first));
            prop_assert_eq!(head.length as usize, value.len());
        }
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
