//! Hashes with a seed that the host chooses.
//!
//! Values come from the senders of events, who could choose values that collide. If the host draws
//! the seed at random, no sender can know which values collide.

use std::fmt;
use std::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use crate::key::Key;

/// The fractions of the golden ratio and of pi, in binary: numbers with many bits. The ids of a key are small, and are
/// multiplied by little more than the seed, so that without these numbers a seed such as 0 would give equal hashes.
const MANY_BITS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0x243F_6A88_85A3_08D3];

/// The keys of a hash. The same seed gives the same hashes; they affect only the time, not any
/// result.
#[derive(Clone)]
pub struct HashKeys {
    seed: u64,
    shared: SharedSeed,
}

impl HashKeys {
    /// The keys for a seed. Draw the seed at random if values may come from strangers.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { seed: seed ^ MANY_BITS[0], shared: SharedSeed::from_u64(seed ^ MANY_BITS[1]) }
    }

    /// The hash of a value.
    #[inline]
    #[must_use]
    pub fn hash(&self, value: &[u8]) -> u32 {
        let mut hasher = self.hasher();
        hasher.write(value);
        upper_half(&hasher)
    }

    /// The hash of the ids of a key.
    #[inline]
    pub(crate) fn hash_ids(&self, key: Key) -> u32 {
        let [a, b, c, d] = key.map(u128::from);
        let mut hasher = self.hasher();
        hasher.write_u128(a | b << 32 | c << 64 | d << 96);
        upper_half(&hasher)
    }

    #[inline]
    fn hasher(&self) -> FoldHasher<'_> {
        FoldHasher::with_seed(self.seed, &self.shared)
    }
}

impl fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKeys")
    }
}

/// The bits of a hash that depend most on all of its input.
#[inline]
fn upper_half(hasher: &FoldHasher<'_>) -> u32 {
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::HashKeys;

    #[test]
    fn every_seed_spreads_the_ids_of_keys() {
        for seed in (0..16).chain([u64::MAX, 1 << 32, 1 << 63]) {
            let keys = HashKeys::from_seed(seed);
            for counts in [[1, 100, 20, 50], [100, 20, 50, 1], [50, 1, 100, 20], [20, 50, 1, 100]] {
                let [a, b, c, d] = counts;
                let ids = (0..a).flat_map(|a| (0..b).map(move |b| (a, b)));
                let ids = ids.flat_map(|(a, b)| (0..c).map(move |c| (a, b, c)));
                let ids = ids.flat_map(|(a, b, c)| (0..d).map(move |d| [a, b, c, d]));
                let hashes: Vec<u32> = ids.map(|key| keys.hash_ids(key)).collect();
                // Of 100,000 random numbers below 2^17, about 70,000 are distinct.
                let upper: HashSet<u32> = hashes.iter().map(|hash| hash >> 15).collect();
                let lower: HashSet<u32> = hashes.iter().map(|hash| hash & 0x1_FFFF).collect();
                assert!(
                    upper.len().min(lower.len()) > 40_000,
                    "seed {seed}, {counts:?}: {} and {}",
                    upper.len(),
                    lower.len()
                );
            }
        }
    }
}
