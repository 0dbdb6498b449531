//! Whole numbers.

/// A number with a comma after every third digit: `1,234,567`.
#[must_use]
pub fn grouped(number: impl ToString) -> String {
    let digits = number.to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    let mut grouped = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A change with its sign: `+1,234`, `-5`, `0`.
#[must_use]
pub fn signed(change: i128) -> String {
    match change > 0 {
        true => format!("+{}", grouped(change)),
        false => grouped(change),
    }
}

/// Reads a whole number of ASCII digits, which may be negative. (Rust's own parser accepts a plus sign.)
#[must_use]
pub fn whole(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-123_456, "-123,456"),
            (u64::MAX.into(), "18,446,744,073,709,551,615"),
        ] {
            let number: i128 = number;
            assert_eq!(grouped(number), text);
        }
        assert_eq!([5, 0, -5].map(signed), ["+5", "0", "-5"]);
    }

    #[test]
    fn numbers_have_only_digits() {
        for text in ["", "-", "+5", "1_000", "1e3", "٣"] {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(whole("-12"), Some(-12));
    }
}
