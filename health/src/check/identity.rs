//! Stable names of findings.

/// A name for a rule and the values of a group: a 64-bit FNV-1a hash. Each text is followed by a byte that UTF-8 does not
/// have, so that no two lists of texts give the same bytes.
pub(crate) fn id_of<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in texts {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
