//! Hashes with a seed that the host chooses.
//!
//! Values come from the senders of events, who could choose values that collide. If the host draws
//! the seed at random, nobody can know which values collide.

use std::fmt;
use std::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use crate::key::Key;

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
        Self {
            seed,
            shared: SharedSeed::from_u64(seed),
        }
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
