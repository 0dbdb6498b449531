//! Lengths of time.

use std::time::Duration;

/// The units from the largest down, in milliseconds.
const UNITS: [(u64, &str); 6] = [
    (604_800_000, "w"),
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "m"),
    (1_000, "s"),
    (1, "ms"),
];

/// Reads a length of time with its unit, in milliseconds: `500ms`, `30s`, `15m`, `2h`, `7d`, `2w`, or several of them:
/// `1h30m`. `0` needs no unit.
#[must_use]
pub fn milliseconds(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = UNITS.iter().find(|(_, name)| *name == &rest[..letters]);
        rest = &rest[letters..];
        sum = sum.checked_add(number.checked_mul(unit?.0)?)?;
    }
    (!text.is_empty()).then_some(sum)
}

/// Writes a length of time in the largest unit, up to hours, that gives a whole number.
#[must_use]
pub fn duration(ms: u64) -> String {
    let units = UNITS.iter().skip(2);
    let unit = units.clone().find(|(unit, _)| ms >= *unit && ms.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or(&(1, "ms"));
    format!("{}{name}", ms / unit)
}

/// Writes a length of time for a sentence, rounded down to one or two units: `45 s`, `1 min 20 s`, `2 h`, `3 days`.
#[must_use]
pub fn roughly(length: Duration) -> String {
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    };
    let seconds = length.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..172_800 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("1h30m", Some(5_400_000)),
            ("2w", Some(1_209_600_000)),
            ("0s", Some(0)),
            ("0", Some(0)),
            ("00", None),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5h", None),
            ("1 h", None),
            ("1H", None),
            ("1é", None),
            ("99999999999999999999s", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_length() {
        for (ms, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (900_000, "15m"),
            (5_400_000, "90m"),
            (86_400_000, "24h"),
        ] {
            assert_eq!(duration(ms), text);
            assert_eq!(milliseconds(text), Some(ms));
        }
    }

    #[test]
    fn a_length_has_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3_599, "59 min 59 s"),
            (3_600, "1 h"),
            (86_399, "23 h 59 min"),
            (172_800, "2 days"),
        ] {
            assert_eq!(roughly(Duration::from_secs(seconds)), text);
        }
    }
}
