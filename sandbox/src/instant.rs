//! Timestamps as the service writes them: UTC ISO 8601 with `Z` (service reference 4.4 and 8).

use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, SecondsFormat, Timelike, Utc};

pub(crate) type Instant = DateTime<Utc>;

/// Parses a timestamp in the service's format.
pub(crate) fn parse(text: &str) -> Option<Instant> {
    let text = text.strip_suffix('Z')?;
    let (whole, fraction) = text.split_at_checked("2026-01-31T09:15:00".len())?;
    let fits = whole.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let digits = fraction.strip_prefix('.').map(str::as_bytes);
    let fraction_fits = fraction.is_empty()
        || digits.is_some_and(|digits| {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        });
    if !fits || !fraction_fits {
        return None;
    }
    let instant = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    // chrono represents a leap second by more nanoseconds than a second has.
    (instant.nanosecond() < 1_000_000_000).then(|| instant.and_utc())
}

/// Parses the timestamp of an argument, which may have an offset from UTC such as `+01:00`.
pub(crate) fn named_by(text: &str) -> Option<Instant> {
    if let Some(instant) = parse(text) {
        return Some(instant);
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let local = parse(&format!("{local}Z"))?.naive_utc();
    let offset: FixedOffset = offset.parse().ok()?;
    let instant = local.and_local_timezone(offset).single()?.to_utc();
    (0..=9999).contains(&instant.year()).then_some(instant)
}

/// Formats a timestamp as the service does.
pub(crate) fn text(instant: Instant) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
