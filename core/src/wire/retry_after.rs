//! Reads `Date`, and `Retry-After` in every form of RFC 9110 (10.2.3) and in some others.

use crate::time::timestamp::Timestamp;

/// The most seconds: larger values count as this number, which every language represents exactly.
pub(crate) const MOST_SECONDS: u64 = (1 << 53) - 1;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The wait in milliseconds that a response requests; `None` if it requests none.
///
/// Seconds are digits. A date is counted from the response's own `Date`, so that only the service's
/// clock matters; without a `Date`, from `unix_ms`, the caller's clock. A date in the past means 0.
/// If there are several values, in one header or in many, the longest counts. A value that is
/// neither seconds nor a date is ignored.
#[must_use]
pub(crate) fn retry_after(headers: &[(&str, &str)], unix_ms: i64) -> Option<u64> {
    let now_ms = sent_ms(headers, unix_ms).unwrap_or(unix_ms);
    let mut longest = None;
    each_piece(headers, "retry-after", &mut |piece| {
        let until_ms = || date(piece, now_ms);
        let asked = seconds(piece)
            .or_else(|| Some(until_ms()?.saturating_sub(now_ms).max(0).unsigned_abs()));
        longest = longest.max(asked);
    });
    longest
}

/// When a response was sent, by the clock that its `Date` is from: the earliest if there are several, `None` if there is
/// none that can be read. `unix_ms` is the caller's clock, which completes a year of two digits.
#[must_use]
pub(crate) fn sent_ms(headers: &[(&str, &str)], unix_ms: i64) -> Option<i64> {
    let mut earliest = None;
    each_piece(headers, "date", &mut |piece| {
        earliest = earliest.into_iter().chain(date(piece, unix_ms)).min();
    });
    earliest
}

/// The values between commas in all headers with a name. The comma inside a date only cuts off the
/// day of the week, which is redundant.
fn each_piece(headers: &[(&str, &str)], name: &str, take: &mut dyn FnMut(&str)) {
    for (known, value) in headers {
        if known.eq_ignore_ascii_case(name) {
            value.split(',').for_each(|piece| take(piece.trim_ascii()));
        }
    }
}

/// The milliseconds of a number of seconds, however long it is.
fn seconds(text: &str) -> Option<u64> {
    // Parsing digits fails only if there are too many.
    let seconds = is_digits(text).then(|| text.parse().unwrap_or(MOST_SECONDS))?;
    Some(seconds.min(MOST_SECONDS) * 1000)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The timestamp of a date without its day of the week and comma: `06 Nov 1994 08:49:37 GMT` and
/// `06-Nov-94 08:49:37 GMT`; or of a whole `Sun Nov  6 08:49:37 1994`.
fn date(text: &str, now_ms: i64) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    let words = [(); 6].map(|()| words.next().unwrap_or_default());
    let (year, month, day, clock) = match words {
        [date, clock, "GMT", "", ..] => {
            let [day, month, year] = three(date, '-')?;
            (whole_year(number(year, 2)?, now_ms)?, month, day, clock)
        }
        [day, month, year, clock, "GMT", ""] | [_, month, day, clock, year, ""] => {
            (number(year, 4)?, month, day, clock)
        }
        _ => return None,
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as u32;
    let day = number(day, 1).or_else(|| number(day, 2))?;
    let [hour, minute, second] = three(clock, ':')?;
    let clock = [number(hour, 2)?, number(minute, 2)?, number(second, 2)?];
    Timestamp::of(year, month, day, clock, 0).map(Timestamp::unix_ms)
}

fn three(text: &str, separator: char) -> Option<[&str; 3]> {
    let mut parts = text.split(separator);
    let all = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(all)
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let fits = text.len() == digits && is_digits(text);
    fits.then(|| text.parse().ok()).flatten()
}

/// The year that ends in those two digits and is at most 50 years ahead, as RFC 9110 (5.6.7) requires.
fn whole_year(digits: u32, now_ms: i64) -> Option<u32> {
    let latest = Timestamp::from_unix_ms(now_ms)?.year() + 50;
    Some(latest - (latest + 100 - digits) % 100)
}

#[cfg(test)]
mod tests {
    use super::{MOST_SECONDS, retry_after};

    /// 2026-01-01T00:00:00Z.
    const NOW_MS: i64 = 1_767_225_600_000;

    fn asked(value: &str) -> Option<u64> {
        retry_after(&[("RETRY-AFTER", value)], NOW_MS)
    }

    #[test]
    fn seconds_are_digits_however_many() {
        assert_eq!(asked("0"), Some(0));
        assert_eq!(asked("120"), Some(120_000));
        for text in ["9007199254740991", "9007199254740992", "18446744073709551616"] {
            assert_eq!(asked(text), Some(MOST_SECONDS * 1000), "{text}");
        }
        let thirty_digits = "9".repeat(30);
        assert_eq!(asked(&thirty_digits), Some(MOST_SECONDS * 1000));
        for text in ["", "-1", "+1", "1.5", "1 2", "1s", "١٢", "NaN", "∞"] {
            assert_eq!(asked(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_has_three_forms() {
        for text in [
            "Thu, 01 Jan 2026 00:01:40 GMT",
            "Thursday, 01-Jan-26 00:01:40 GMT",
            "Thu Jan  1 00:01:40 2026",
        ] {
            assert_eq!(asked(text), Some(100_000), "{text}");
        }
        for text in [
            "Thu, 1.1.2026 00:01:40 GMT",
            "Thu, 01 Jan 2026 00:01:40",
            "Thu, 01 Jan 2026 00:01:40 UTC",
            "Thu, 01 Jan 2026 24:01:40 GMT",
            "Thu, 29 Feb 2026 00:01:40 GMT",
            "Thu, 01 Jan 26 00:01:40 GMT",
            "Thursday, 01-Jan-2026 00:01:40 GMT",
            "Thursday, 01-Jan-+6 00:01:40 GMT",
            "Thursday, 01-01-26 00:01:40 GMT",
            "Thu Jan  1 00:01:40 2026 GMT",
            "Thu, 01 Jan 2026 00:01:40 GMT GMT",
            "Thu, 01 Jan 10000 00:01:40 GMT",
        ] {
            assert_eq!(asked(text), None, "{text}");
        }
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_50_years_ahead() {
        let year_ms = 365 * 86_400_000;
        let near = asked("Wednesday, 01-Jan-76 00:00:00 GMT").unwrap_or_default();
        assert!(near > 49 * year_ms && near < 51 * year_ms, "{near}");
        assert_eq!(asked("Saturday, 01-Jan-77 00:00:00 GMT"), Some(0));
        let headers = [
            ("date", "Fri, 31 Dec 2099 23:59:50 GMT"),
            ("retry-after", "Friday, 01-Jan-00 00:00:00 GMT"),
        ];
        assert_eq!(retry_after(&headers, NOW_MS), Some(10_000));
    }

    #[test]
    fn the_longest_of_several_counts_and_garbage_does_not() {
        assert_eq!(asked("5, Thu, 01 Jan 2026 00:00:04 GMT, x"), Some(5_000));
        assert_eq!(asked(",, 5 ,-9"), Some(5_000));
        let headers = [("retry-after", "5"), ("Retry-After", "6"), ("retry", "7")];
        assert_eq!(retry_after(&headers, NOW_MS), Some(6_000));
        assert_eq!(retry_after(&[("date", "5")], NOW_MS), None);
    }

    #[test]
    fn a_date_counts_from_the_services_own_clock() {
        let until = ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT");
        let own = ("Date", "Thu, 01 Jan 2026 00:00:20 GMT");
        assert_eq!(retry_after(&[own, until], NOW_MS + 3_600_000), Some(10_000));
        assert_eq!(retry_after(&[until, ("Date", "")], NOW_MS + 500), Some(29_500));
        assert_eq!(retry_after(&[until], i64::MAX), Some(0));
        let far = retry_after(&[until], i64::MIN);
        assert!(far.is_some_and(|ms| ms > 60_000), "{far:?}");
    }
}
