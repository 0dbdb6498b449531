//! Which numbers a 64-bit float holds.

use std::cmp::Ordering;

/// The digits of the largest 64-bit float, 1.7976931348623157e308.
const LARGEST: &[u8; 17] = b"17976931348623157";

/// The exponent of its first digit.
const LARGEST_EXPONENT: i64 = 308;

/// No number has this many digits, so a greater exponent makes no difference.
const GREAT: i64 = 1 << 48;

/// Whether a JSON number is above the largest 64-bit float, or below its negative. JavaScript reads such a number as
/// `Infinity` or `-Infinity`, unless it rounds it to the largest float. This function compares the first 17 digits,
/// because in WebAssembly a parser of floats is larger than all the rest of this module.
pub(crate) fn is_beyond_double(number: &str) -> bool {
    let mut leading = *b"00000000000000000";
    let mut digits = 0;
    // The exponent of the first digit that is not 0.
    let mut first = -1;
    let mut in_fraction = false;
    let mut bytes = number.bytes();
    for byte in bytes.by_ref() {
        match byte {
            b'-' => {}
            b'.' => in_fraction = true,
            b'e' | b'E' => break,
            b'0' if digits == 0 => first -= i64::from(in_fraction),
            digit => {
                if let Some(place) = leading.get_mut(digits) {
                    *place = digit;
                }
                digits += 1;
                first += i64::from(!in_fraction);
            }
        }
    }
    let mut exponent = 0;
    let mut is_negative = false;
    for byte in bytes {
        match byte {
            b'+' => {}
            b'-' => is_negative = true,
            digit => exponent = GREAT.min(exponent * 10 + i64::from(digit - b'0')),
        }
    }
    first += if is_negative { -exponent } else { exponent };
    digits > 0
        && match first.cmp(&LARGEST_EXPONENT) {
            Ordering::Equal => leading > *LARGEST,
            order => order.is_gt(),
        }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parses_as_infinite(number: &str) -> bool {
        number.parse::<f64>().is_ok_and(f64::is_infinite)
    }

    #[test]
    fn edges() {
        for (number, beyond) in [
            ("0", false),
            ("-0e999999999999999999999", false),
            ("1.7976931348623157e308", false),
            ("-1.7976931348623157e308", false),
            // Above the largest float, but rounded to it.
            ("1.7976931348623158e308", true),
            ("0.00017976931348623157e+312", false),
            ("17976931348623157000E289", false),
            ("17976931348623158000E289", true),
            ("1e309", true),
            ("-1e400", true),
            ("1e-999999999999999999999", false),
            ("1e999999999999999999999", true),
            ("1e9223372036854775807", true),
            ("10e9223372036854775807", true),
        ] {
            assert_eq!(is_beyond_double(number), beyond, "{number}");
        }
        assert!(is_beyond_double(&"9".repeat(309)));
        assert!(!is_beyond_double(&"9".repeat(308)));
        assert!(!is_beyond_double(&format!("0.{}1e600", "0".repeat(600))));
    }

    proptest! {
        #[test]
        fn what_is_taken_is_finite(number in "-?(0|[1-9][0-9]{0,330})([.][0-9]{1,330})?([eE][+-]?[0-9]{1,4})?") {
            prop_assert!(is_beyond_double(&number) || !parses_as_infinite(&number));
        }

        #[test]
        fn all_others_are_infinite_but_for_the_nearest_to_the_largest(
            number in "-?1797693134862315[5-9][0-9]{0,3}[eE]29[12]"
        ) {
            let largest = number.parse::<f64>().is_ok_and(|parsed| parsed.abs() == f64::MAX);
            prop_assert!(!is_beyond_double(&number) || parses_as_infinite(&number) || largest);
        }
    }
}
