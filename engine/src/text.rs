//! Where plain text ends: the one question that is asked of every byte.

/// The white space of JSON.
#[must_use]
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// How many bytes come before the first quote, backslash or control character, all of them if
/// there is none; and whether they are ASCII.
#[inline]
#[must_use]
pub fn plain_text(bytes: &[u8]) -> (usize, bool) {
    let (blocks, tail) = bytes.as_chunks();
    let mut is_ascii = true;
    for (index, block) in blocks.iter().enumerate() {
        let scan = block::scan(block);
        is_ascii &= scan.is_ascii;
        if scan.length < BLOCK {
            return (index * BLOCK + scan.length, is_ascii);
        }
    }
    let mut block = [b'"'; BLOCK];
    block[..tail.len()].copy_from_slice(tail);
    let scan = block::scan(&block);
    (
        blocks.len() * BLOCK + scan.length,
        is_ascii && scan.is_ascii,
    )
}

/// How many bytes are looked at in one go.
const BLOCK: usize = 16;

/// What a block starts with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scan {
    /// The number of plain bytes, all of them if none ends the text.
    length: usize,
    /// Whether the plain bytes are ASCII.
    is_ascii: bool,
}

#[cfg(target_arch = "x86_64")]
use sse2 as block;
#[cfg(not(target_arch = "x86_64"))]
use words as block;

/// A block in one register.
///
/// The only unsafe code of the project. The compiler wants to be promised that the processor has
/// SSE2 when an intrinsic is called; every x86-64 processor has it, by the definition of the
/// architecture. No pointer is involved: the block comes by value.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "intrinsics of the baseline of the architecture")]
mod sse2 {
    use core::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };

    use super::{BLOCK, Scan};

    #[inline]
    pub(super) fn scan(block: &[u8; BLOCK]) -> Scan {
        // SAFETY: this is x86-64, of which SSE2 is a part.
        unsafe { scan_in_register(*block) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn scan_in_register(block: [u8; BLOCK]) -> Scan {
        let both = u128::from_le_bytes(block);
        let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
        let ends = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));
        // The end itself is ASCII, and what comes after it does not count.
        let length = (ends | 1 << BLOCK).trailing_zeros();
        let before = (1 << length) - 1;
        Scan {
            length: length as usize,
            is_ascii: _mm_movemask_epi8(bytes) & before == 0,
        }
    }
}

/// The portable twin: a block in two words of eight bytes.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use super::{BLOCK, HIGH_BITS, LOW_BITS, Scan};

    #[inline]
    pub(super) fn scan(block: &[u8; BLOCK]) -> Scan {
        let both = u128::from_le_bytes(*block);
        let (low, high) = (both as u64, (both >> 64) as u64);
        let ends = ends(low);
        if ends != 0 {
            return before(low, ends, 0);
        }
        let is_ascii = low & HIGH_BITS == 0;
        let Scan {
            length,
            is_ascii: rest_is,
        } = match self::ends(high) {
            0 => Scan {
                length: BLOCK,
                is_ascii: high & HIGH_BITS == 0,
            },
            ends => before(high, ends, 8),
        };
        Scan {
            length,
            is_ascii: is_ascii && rest_is,
        }
    }

    /// The bytes of a word before the first that ends the text.
    #[inline]
    fn before(word: u64, ends: u64, offset: usize) -> Scan {
        let length = ends.trailing_zeros() / 8;
        let after = u64::MAX << (length * 8);
        Scan {
            length: offset + length as usize,
            is_ascii: word & !after & HIGH_BITS == 0,
        }
    }

    /// The high bit of each byte that is a quote, a backslash or a control character. Bits above
    /// the lowest one may be wrong: a borrow goes upwards.
    #[inline]
    fn ends(word: u64) -> u64 {
        let zero = |word: u64| word.wrapping_sub(LOW_BITS) & !word;
        let quote = zero(word ^ (LOW_BITS * b'"' as u64));
        let backslash = zero(word ^ (LOW_BITS * b'\\' as u64));
        let control = word.wrapping_sub(LOW_BITS * 0x20) & !word;
        (quote | backslash | control) & HIGH_BITS
    }
}

/// A one in each byte.
pub(crate) const LOW_BITS: u64 = u64::MAX / 255;

/// The highest bit of each byte.
#[cfg(any(test, not(target_arch = "x86_64")))]
const HIGH_BITS: u64 = LOW_BITS << 7;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, byte by byte.
    fn plainly(bytes: &[u8]) -> (usize, bool) {
        let ends = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        let length = bytes.iter().position(ends).unwrap_or(bytes.len());
        (length, bytes[..length].is_ascii())
    }

    /// Bytes near the edges of what is plain.
    fn any_byte() -> impl Strategy<Value = u8> {
        let edge = prop::sample::select(b"\x00\x1F\x20\x21\"#[\\]\x7F\x80\xFF".to_vec());
        prop_oneof![8 => b'a'..=b'z', 1 => edge, 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn text_is_scanned_as_byte_by_byte(bytes in prop::collection::vec(any_byte(), 0..80)) {
            prop_assert_eq!(plain_text(&bytes), plainly(&bytes));
        }

        #[test]
        fn both_ways_to_scan_a_block_agree(bytes in prop::array::uniform16(any_byte())) {
            let (length, is_ascii) = plainly(&bytes);
            prop_assert_eq!(words::scan(&bytes), Scan { length, is_ascii });
            prop_assert_eq!(block::scan(&bytes), Scan { length, is_ascii });
        }
    }
}
