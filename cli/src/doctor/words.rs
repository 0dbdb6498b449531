//! Lengths of time for a person.

use std::time::Duration;

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
