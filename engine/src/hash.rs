//! Hashes under a seed that the host may choose.
//!
//! Values come from whoever sends events, so they may be made to collide. Where the host draws the seed at
//! random, nobody can know which values do.

use std::fmt;
use std::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use crate::key::Key;

/// What a hash depends on. The same seed gives the same hashes, and no result depends on them but the
/// time it takes.
#[derive(Clone)]
pub struct HashKeys {
    seed: u64,
    shared: SharedSeed,
}

impl HashKeys {
    /// The keys of a seed, which a host draws at random where values come from strangers.
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
