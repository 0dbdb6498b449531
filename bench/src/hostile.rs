//! Values that someone would send to make the fold slow.

use tallyfold_engine::HashKeys;

/// Values that differ only after a KiB, so that each comparison is long.
pub(crate) fn long_prefixes(count: usize) -> Vec<String> {
    let prefix = "x".repeat(1024);
    (0..count).map(|number| format!("{prefix}{number:06}")).collect()
}

/// The seed that the values are made for.
pub(crate) const KNOWN_SEED: u64 = 0;

/// The bits of a hash that choose a bucket in a table of up to 4,096.
const BUCKET: u32 = 0xFFF;

/// Values whose hashes under [`KNOWN_SEED`] share their low 12 bits, found by trial. If hashes are
/// keyed with that seed, all of these values fall into the same few buckets.
pub(crate) fn colliding(count: usize) -> Vec<String> {
    let keys = HashKeys::from_seed(KNOWN_SEED);
    (0_u64..)
        .map(|number| format!("{number:x}"))
        .filter(|value| keys.hash(value.as_bytes()) & BUCKET == 0)
        .take(count)
        .collect()
}
