//! Turns digits into numbers, eight at a time.

use crate::text::LOW_BITS;

/// The most digits that are read: any number with this many digits fits in a `u64`.
pub(crate) const MOST_DIGITS: usize = 19;

/// Reads the digits at the start of the bytes. Returns the number and how many digits it has.
/// `None` if there is no digit or more than 19 digits, which may not fit in a `u64`, or if there
/// are fewer than eight bytes.
#[inline]
#[must_use]
pub fn read_count(bytes: &[u8]) -> Option<(u64, usize)> {
    // A byte that is a digit becomes its value.
    let digits = u64::from_le_bytes(*bytes.first_chunk()?) ^ ZEROS;
    let length = leading_digits(digits);
    if length == 0 {
        return None;
    }
    if length < 8 {
        // Moves the digits to the end, after leading zeros.
        return Some((parse_eight(digits << (64 - 8 * length)), length as usize));
    }
    read_long_count(parse_eight(digits), &bytes[8..])
}

/// Reads a count of eight digits or more.
#[cold]
fn read_long_count(first_eight: u64, rest: &[u8]) -> Option<(u64, usize)> {
    let length = rest.iter().take(MOST_DIGITS - 7).take_while(|byte| byte.is_ascii_digit()).count();
    let tail = |count: u64, byte: &u8| count * 10 + u64::from(byte - b'0');
    (length <= MOST_DIGITS - 8).then(|| {
        let count = rest[..length].iter().fold(first_eight, tail);
        (count, 8 + length)
    })
}

/// Eight times the digit 0.
const ZEROS: u64 = LOW_BITS * b'0' as u64;

/// How many of the first bytes are from 0 to 9.
#[inline]
fn leading_digits(digits: u64) -> u32 {
    // The high half of a byte is 0 only for a digit: 0 to 9 stay below 16 even with 6 added.
    let others = (digits | digits.wrapping_add(LOW_BITS * 6)) & (LOW_BITS * 0xF0);
    others.trailing_zeros() / 8
}

/// The number with eight digits, the first one in the lowest byte.
#[inline]
fn parse_eight(digits: u64) -> u64 {
    // The first product adds ten times each digit to the digit after it, which makes pairs. The
    // others do the same with pairs and with fours.
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(100 << 16 | 1) >> 16;
    (fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(10_000 << 32 | 1) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, one digit after another.
    fn plainly(bytes: &[u8]) -> Option<(u64, usize)> {
        let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
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
