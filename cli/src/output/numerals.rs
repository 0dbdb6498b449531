//! Numbers for people: grouped digits, rates and shares.

/// A number with a comma after every third digit: `1,234,567`.
pub(crate) fn grouped(number: impl ToString) -> String {
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
pub(crate) fn signed(change: i128) -> String {
    match change > 0 {
        true => format!("+{}", grouped(change)),
        false => grouped(change),
    }
}

/// A rate in percent with two decimals. It is 100.00% only if the rate is 1, and 0.00% only if it is 0: one lost event
/// among millions is not rounded away.
pub(crate) fn percent(rate: Option<f64>) -> String {
    let Some(rate) = rate else {
        return "-".to_owned();
    };
    let text = format!("{:.2}%", rate * 100.0);
    match text.as_str() {
        "100.00%" if rate < 1.0 => ">99.99%".to_owned(),
        "0.00%" if rate > 0.0 => "<0.01%".to_owned(),
        _ => text,
    }
}

/// A share of a change in percent with one decimal; it may be below 0% and above 100%.
pub(crate) fn share(share: Option<f64>) -> String {
    let Some(share) = share else {
        return "-".to_owned();
    };
    let text = format!("{:.1}%", share * 100.0);
    match text.as_str() {
        "-0.0%" => "0.0%".to_owned(),
        _ => text,
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
    fn a_lost_event_is_not_rounded_away() {
        assert_eq!(percent(Some(1.0)), "100.00%");
        assert_eq!(percent(Some(0.999_999)), ">99.99%");
        assert_eq!(percent(Some(0.000_001)), "<0.01%");
        assert_eq!(percent(Some(0.0)), "0.00%");
        assert_eq!(percent(Some(0.5)), "50.00%");
        assert_eq!(percent(None), "-");
        assert_eq!(share(Some(-0.0001)), "0.0%");
        assert_eq!(share(Some(-12.5)), "-1250.0%");
    }
}
