//! Values that are written as text: lengths of time, numbers, lists.

/// The parts of a text between commas, without the spaces around them.
pub(crate) fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A length of time with its unit: `500ms`, `30s`, `15m`, `2h`, `7d`, or several: `1h30m`.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = unit_ms(&rest[..letters])?;
        rest = &rest[letters..];
        sum = sum.checked_add(number.checked_mul(unit)?)?;
    }
    (!text.is_empty()).then_some(sum)
}

fn unit_ms(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    })
}

/// A whole number, in digits only.
pub(crate) fn whole(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
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
    fn numbers_have_only_digits() {
        for text in ["", "-", "+5", "1_000", "1e3", "٣"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(whole("-12"), Some(-12));
    }
}
