//! Rates and shares in the columns of a table.

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
