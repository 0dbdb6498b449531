//! Turns digits into numbers, eight at a time.

use crate::text::LOW_BITS;

/// The most digits that are read: any number with so many digits fits in a `u64`.
pub(crate) const MOST_DIGITS: usize = 19;

/// Reads the digits at the start of the bytes: gives the number and how many digits it has. `None`
/// if there is no digit or more than 19 digits, which may not fit in a `u64`, or if there are fewer
/// than eight bytes.
#[inline]
#[must_use]
pub fn read_count(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let length = leading_digits(word);
    if length == 0 {
        return None;
    }
    if length < 8 {
        // Moves the digits to the end and fills with leading zeros.
        let digits = word << (64 - 8 * length) | ZEROS >> (8 * length);
        return Some((parse_eight(digits), length as usize));
    }
    read_long_count(word, &bytes[8..])
}

/// Reads a count of eight digits or more.
#[cold]
fn read_long_count(head: u64, rest: &[u8]) -> Option<(u64, usize)> {
    let length = rest
        .iter()
        .take(MOST_DIGITS - 7)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let tail = |count: u64, byte: &u8| count * 10 + u64::from(byte - b'0');
    (length <= MOST_DIGITS - 8).then(|| {
        let count = rest[..length].iter().fold(parse_eight(head), tail);
        (count, 8 + length)
    })
}

/// Eight times the digit 0.
const ZEROS: u64 = LOW_BITS * b'0' as u64;

/// How many of the first bytes are ASCII digits.
#[inline]
fn leading_digits(word: u64) -> u32 {
    let from_zero = word ^ ZEROS;
    // The high half of a byte is set unless the byte is a digit: 0 to 9 stay below 16 with 6 added.
    let others = (from_zero | from_zero.wrapping_add(LOW_BITS * 6)) & (LOW_BITS * 0xF0);
    others.trailing_zeros() / 8
}

/// The value of eight digits, the first one in the lowest byte.
#[inline]
fn parse_eight(word: u64) -> u64 {
    let digits = word & (LOW_BITS * 0x0F);
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, one digit after another.
    fn plainly(bytes: &[u8]) -> Option<(u64, usize)> {
        let length = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let digits = str::from_utf8(&bytes[..length]).expect("ASCII");
        let fits = bytes.len() >= 8 && (1..20).contains(&length);
        fits.then(|| (digits.parse().expect("19 digits fit"), length))
    }

    proptest! {
        #[test]
        fn digits_are_read_as_one_by_one(digits in "[0-9]{0,22}", after in "[\"/:x\u{e9}\\x00-9]{0,9}") {
            let bytes = format!("{digits}{after}").into_bytes();
            prop_assert_eq!(read_count(&bytes), plainly(&bytes));
        }

        #[test]
        fn any_bytes_are_read_as_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            prop_assert_eq!(read_count(&bytes), plainly(&bytes));
        }
    }
}
