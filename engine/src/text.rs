//! Finds the end of plain text. This is the only check that every byte goes through.

/// The white space of JSON.
#[must_use]
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// How many bytes come before the first quote, backslash or control character; all of them if there
/// is none.
#[inline]
#[must_use]
pub fn plain_text(bytes: &[u8]) -> usize {
    let length = ascii_text(bytes);
    match bytes.get(length) {
        Some(0x80..) => length + text_beyond_ascii(&bytes[length..]),
        _ => length,
    }
}

/// The same, byte by byte.
fn text_beyond_ascii(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// The length of a string, from after its opening quote to the closing one; `None` unless the bytes
/// between are UTF-8 without a backslash or a control character.
#[inline(always)]
pub(crate) fn string_length(bytes: &[u8]) -> Option<usize> {
    ending_at(ascii_text(bytes), bytes)
}

/// The same for an ASCII string shorter than a block; `None` for any other string, and near the end
/// of the bytes.
#[inline(always)]
pub(crate) fn short_string_length(bytes: &[u8]) -> Option<usize> {
    let block = bytes.first_chunk()?;
    let length = block::ascii_text(block);
    (block.get(length) == Some(&b'"')).then_some(length)
}

/// The same for any string. It is faster if strings are often longer than one block but seldom
/// longer than two, because checking two blocks takes less time than a mispredicted branch.
#[inline(always)]
pub(crate) fn long_string_length(bytes: &[u8]) -> Option<usize> {
    let length = match bytes.first_chunk() {
        Some(blocks) => match block::ascii_text_of_two(blocks) {
            TWO_BLOCKS => TWO_BLOCKS + ascii_text(&bytes[TWO_BLOCKS..]),
            length => length,
        },
        None => ascii_text(bytes),
    };
    ending_at(length, bytes)
}

#[inline(always)]
fn ending_at(length: usize, bytes: &[u8]) -> Option<usize> {
    if bytes.get(length) == Some(&b'"') {
        return Some(length);
    }
    string_beyond_ascii(bytes)
}

#[inline(never)]
fn string_beyond_ascii(bytes: &[u8]) -> Option<usize> {
    let length = plain_text(bytes);
    let is_string = bytes.get(length) == Some(&b'"') && str::from_utf8(&bytes[..length]).is_ok();
    is_string.then_some(length)
}

/// How many bytes come before the first quote, backslash, control character or byte that is not
/// ASCII; all of them if there is none.
#[inline]
pub(crate) fn ascii_text(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes[at..].first_chunk() {
        let length = block::ascii_text(block);
        at += length;
        if length < BLOCK {
            return at;
        }
    }
    at + ascii_tail(&bytes[at..])
}

/// The same for fewer bytes than a block.
#[cold]
fn ascii_tail(bytes: &[u8]) -> usize {
    let mut block = [b'"'; BLOCK];
    block[..bytes.len()].copy_from_slice(bytes);
    block::ascii_text(&block)
}

/// How many bytes are checked in one go.
pub(crate) const BLOCK: usize = 32;
const TWO_BLOCKS: usize = 2 * BLOCK;

/// A block whose first `count` bytes (at most all) have all bits set; the others are zero.
#[inline(always)]
pub(crate) fn first_bytes(count: usize) -> [u8; BLOCK] {
    const ONES_AND_ZEROS: [u8; TWO_BLOCKS] = {
        let mut bytes = [0; TWO_BLOCKS];
        let mut at = 0;
        while at < BLOCK {
            bytes[at] = 0xFF;
            at += 1;
        }
        bytes
    };
    let start = BLOCK - count.min(BLOCK);
    let mut block = [0; BLOCK];
    block.copy_from_slice(&ONES_AND_ZEROS[start..start + BLOCK]);
    block
}

#[cfg(target_arch = "x86_64")]
use registers as block;
#[cfg(not(target_arch = "x86_64"))]
use words as block;

/// A block in registers.
#[cfg(target_arch = "x86_64")]
mod registers {
    use super::{BLOCK, TWO_BLOCKS};
    use crate::simd::ends_of_text;

    #[inline]
    pub(super) fn ascii_text(block: &[u8; BLOCK]) -> usize {
        // If there is no end, all 32 bits are zero.
        ends_of_text(*block).trailing_zeros() as usize
    }

    #[inline]
    pub(super) fn ascii_text_of_two(blocks: &[u8; TWO_BLOCKS]) -> usize {
        let (blocks, _) = blocks.as_chunks();
        let [low, high] = [blocks[0], blocks[1]].map(|block| u64::from(ends_of_text(block)));
        (high << 32 | low).trailing_zeros() as usize
    }
}

/// The portable version: reads a block in words of eight bytes.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use super::{BLOCK, LOW_BITS, TWO_BLOCKS};

    #[inline]
    pub(super) fn ascii_text(block: &[u8; BLOCK]) -> usize {
        let (words, _) = block.as_chunks();
        for (index, word) in words.iter().enumerate() {
            let ends = ends(u64::from_le_bytes(*word));
            if ends != 0 {
                return index * 8 + ends.trailing_zeros() as usize / 8;
            }
        }
        BLOCK
    }

    #[inline]
    pub(super) fn ascii_text_of_two(blocks: &[u8; TWO_BLOCKS]) -> usize {
        let (blocks, _) = blocks.as_chunks();
        match ascii_text(&blocks[0]) {
            BLOCK => BLOCK + ascii_text(&blocks[1]),
            length => length,
        }
    }

    /// The high bit of each byte that is a quote, a backslash, a control character or not ASCII.
    /// Only the lowest bit is reliable, because a borrow can set bits above it.
    #[inline]
    fn ends(word: u64) -> u64 {
        // Bytes with their high bit set are included anyway, so the others can be treated as 7
        // bits. With this bit flipped, a quote comes right after the control characters and a space
        // does not.
        let flipped = word ^ (LOW_BITS * (b'"' ^ 0x20) as u64);
        let others = flipped.wrapping_sub(LOW_BITS * 0x21);
        let backslash = (word ^ (LOW_BITS * b'\\' as u64)).wrapping_sub(LOW_BITS);
        (others | backslash | word) & (LOW_BITS << 7)
    }
}

/// A one in each byte.
pub(crate) const LOW_BITS: u64 = u64::MAX / 255;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, byte by byte.
    fn plainly(bytes: &[u8]) -> usize {
        let ends = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        bytes.iter().position(ends).unwrap_or(bytes.len())
    }

    /// Bytes next to the limits of plain text.
    fn any_byte() -> impl Strategy<Value = u8> {
        let edge = prop::sample::select(b"\x00\x1F\x20\x21\"#[\\]\x7F\x80\xFF".to_vec());
        prop_oneof![8 => b'a'..=b'z', 1 => edge, 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn text_is_scanned_as_byte_by_byte(bytes in prop::collection::vec(any_byte(), 0..80)) {
            let length = plainly(&bytes);
            prop_assert_eq!(plain_text(&bytes), length);
            let is_string = bytes.get(length) == Some(&b'"')
                && str::from_utf8(&bytes[..length]).is_ok();
            prop_assert_eq!(string_length(&bytes), is_string.then_some(length));
            prop_assert_eq!(long_string_length(&bytes), is_string.then_some(length));
            let is_short = is_string && bytes.len() >= BLOCK && bytes[..length].is_ascii();
            let is_short = is_short && length < BLOCK;
            prop_assert_eq!(short_string_length(&bytes), is_short.then_some(length));
        }

        #[test]
        fn both_ways_to_scan_two_blocks_agree(bytes in prop::collection::vec(any_byte(), 64)) {
            let blocks = bytes.first_chunk().expect("two blocks");
            prop_assert_eq!(words::ascii_text_of_two(blocks), ascii_text(&bytes));
            prop_assert_eq!(block::ascii_text_of_two(blocks), ascii_text(&bytes));
        }

        #[test]
        fn both_ways_to_scan_a_block_agree(bytes in prop::array::uniform32(any_byte())) {
            let beyond_ascii = bytes.iter().position(|byte| *byte >= 0x80);
            let length = plainly(&bytes).min(beyond_ascii.unwrap_or(BLOCK));
            prop_assert_eq!(words::ascii_text(&bytes), length);
            prop_assert_eq!(block::ascii_text(&bytes), length);
        }
    }
}
