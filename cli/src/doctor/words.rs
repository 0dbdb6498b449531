//! Numbers and lengths of time for a person.

use std::time::Duration;

/// A number with its digits in groups of three.
pub(crate) fn digits(number: u128) -> String {
    let plain = number.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A length of time in one or two units.
pub(crate) fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two([(seconds / 60, "min"), (seconds % 60, "s")]),
        3_600..172_800 => two([(seconds / 3_600, "h"), (seconds % 3_600 / 60, "min")]),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn two([(large, unit), (small, smaller)]: [(u64, &str); 2]) -> String {
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(digits(number), text);
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
            assert_eq!(length(Duration::from_secs(seconds)), text);
        }
    }
}
