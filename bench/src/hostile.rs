//! Values that someone would send to make the fold slow.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Values that differ only after a KiB, so that each comparison is long.
pub(crate) fn long_prefixes(count: usize) -> Vec<String> {
    let prefix = "x".repeat(1024);
    (0..count)
        .map(|number| format!("{prefix}{number:06}"))
        .collect()
}

/// The bits of a hash that choose a bucket in a table of up to 4,096.
const BUCKET: u64 = 0xFFF;

/// Values whose hashes share their low 12 bits, found by trying: where the engine's hash is known
/// beforehand, they all fall into the same few buckets.
pub(crate) fn colliding(count: usize) -> Vec<String> {
    // The hash that the engine gives a value. This is the line to change when the engine's does.
    let hasher = FixedState::default();
    let hash = |value: &str| hasher.hash_one(value.as_bytes());
    (0_u64..)
        .map(|number| format!("{number:x}"))
        .filter(|value| hash(value) & BUCKET == 0)
        .take(count)
        .collect()
}
