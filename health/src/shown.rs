//! Writes numbers and times for sentences.

use tallyfold::text::harmless;
use tallyfold::{Timestamp, Window};

/// Returns a share as a percentage with the digits that matter, such as `12.2%` or `0.034%`.
pub(crate) fn percent(share: f64) -> String {
    percent_unlike(share, "")
}

/// Returns a share as a percentage with enough digits to differ from another text, such as `6.02%` next to `6%`. If more
/// digits don't make a difference, the texts stay equal.
pub(crate) fn percent_unlike(share: f64, other: &str) -> String {
    let percent = share * 100.0;
    let places = match percent {
        p if p >= 1.0 || p <= 0.0 => 1,
        p if p >= 0.1 => 2,
        p if p >= 0.01 => 3,
        _ => 4,
    };
    let shown = |places: usize| {
        let shown = format!("{percent:.places$}");
        let shown = match shown.contains('.') {
            true => shown.trim_end_matches('0').trim_end_matches('.'),
            false => &shown,
        };
        format!("{shown}%")
    };
    let more = places + 1..=places + MOST_MORE_DIGITS;
    let different = more.map(shown).find(|text| text != other);
    match shown(places) {
        text if text == other => different.unwrap_or(text),
        text => text,
    }
}

/// The maximum number of additional digits that [`percent_unlike`] uses.
const MOST_MORE_DIGITS: usize = 6;

/// Returns a window as text, such as `2026-03-01 02:45 to 03:00 UTC`.
pub(crate) fn window(window: Window) -> String {
    span(window.start(), window.end())
}

/// Returns a range of time as text, such as `2026-03-01 02:45 to 03:00 UTC`.
pub(crate) fn span(start: Timestamp, end: Timestamp) -> String {
    format!("{} to {} UTC", start.short(), short_near(end, start))
}

/// Returns a timestamp as text: only the time of day if it is on the same day as `other`.
pub(crate) fn short_near(at: Timestamp, other: Timestamp) -> String {
    match at.date() == other.date() {
        true => at.short_time(),
        false => at.short(),
    }
}

/// Returns a text from the service in a form that is harmless to display. It keeps at most 100 characters. An empty text becomes
/// `(none)`.
pub(crate) fn value(text: &str) -> String {
    if text.is_empty() {
        return "(none)".to_owned();
    }
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", harmless(&text[..end])),
        None => harmless(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{percent_unlike, value};

    #[test]
    fn a_share_is_shown_differently_from_the_limit_next_to_it() {
        assert_eq!(percent_unlike(43.0 / 714.0, "6%"), "6.02%");
        assert_eq!(percent_unlike(0.06, "6%"), "6%");
        assert_eq!(percent_unlike(422.0 / 1341.0, "10%"), "31.5%");
        assert_eq!(percent_unlike(0.0, "0.1%"), "0%");
        assert_eq!(percent_unlike(0.999_96, "100%"), "99.996%");
    }

    #[test]
    fn a_value_is_harmless_and_not_too_long() {
        assert_eq!(value(""), "(none)");
        assert_eq!(value("a\u{1b}[2J\u{202e}b"), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(value(&"é".repeat(100)), "é".repeat(100));
        assert_eq!(value(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
    }
}
