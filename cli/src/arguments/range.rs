//! The range of time that is asked for: `--since 24h`, or `--from` and `--to`.

use clap::Args;
use tallyfold::text;
use tallyfold::{TimeStep, Timestamp, Window};

use crate::failure::{Failure, Result};

/// Flags for a range of time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Range")]
pub(crate) struct RangeFlags {
    /// How far back: 15m, 24h, 7d [default: 1h]
    ///
    /// Counted from --to. Without --to, the range ends at the last whole minute.
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    pub(crate) since: Option<String>,
    /// The first instant, UTC: 2026-01-31T09:00:00Z
    #[arg(long, value_name = "INSTANT")]
    pub(crate) from: Option<String>,
    /// The first instant after the range [default: the last whole minute]
    ///
    /// In formats that another system keeps (openmetrics, otlp-json, influx, dogstatsd), the default is the last minute whose
    /// counts no longer change.
    #[arg(long, value_name = "INSTANT")]
    pub(crate) to: Option<String>,
}

/// What is asked for if no flag says it.
const USUAL_SINCE: &str = "1h";

impl RangeFlags {
    /// The range, by a clock.
    ///
    /// # Errors
    /// For texts that are no instants or lengths of time, and for a range that ends before it starts.
    pub(crate) fn window(&self, unix_ms: i64) -> Result<Window> {
        self.window_or(USUAL_SINCE, unix_ms)
    }

    /// The range, by a clock; `usual` is how far back it goes if no flag says it.
    ///
    /// # Errors
    /// As [`RangeFlags::window`].
    pub(crate) fn window_or(&self, usual: &str, unix_ms: i64) -> Result<Window> {
        let end = match &self.to {
            Some(text) => instant("--to", text)?,
            None => TimeStep::MINUTE.floor(at("the clock", unix_ms)?),
        };
        let start = match &self.from {
            Some(text) => instant("--from", text)?,
            None => before(end, self.since.as_deref().unwrap_or(usual))?,
        };
        let refused = |_| {
            Failure::usage(format!(
                "--from: want an instant before {end}, where the range ends, not {start}"
            ))
        };
        Window::new(start, end).map_err(refused)
    }
}

/// Parses an instant that a flag has.
pub(crate) fn instant(flag: &str, text: &str) -> Result<Timestamp> {
    Timestamp::parse(text).map_err(|error| Failure::usage(format!("{flag}: {}", error.message())))
}

/// The instant so long before another.
fn before(end: Timestamp, since: &str) -> Result<Timestamp> {
    let wanted = "--since: want a length of time such as 15m, 24h or 7d";
    let ms = text::milliseconds(since).filter(|ms| *ms > 0);
    let ms = ms.and_then(|ms| i64::try_from(ms).ok());
    let start = ms
        .and_then(|ms| end.unix_ms().checked_sub(ms))
        .and_then(Timestamp::from_unix_ms);
    start.ok_or_else(|| Failure::usage(format!("{wanted}, not {since:?}")))
}

fn at(what: &str, unix_ms: i64) -> Result<Timestamp> {
    let refused = || Failure::usage(format!("{what} is not in the years 0 to 9999"));
    Timestamp::from_unix_ms(unix_ms).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_767_225_661_500; // 2026-01-01T00:01:01.5Z

    fn flags(since: Option<&str>, from: Option<&str>, to: Option<&str>) -> RangeFlags {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        RangeFlags {
            since: owned(since),
            from: owned(from),
            to: owned(to),
        }
    }

    #[test]
    fn a_range_ends_at_a_whole_minute() {
        for (since, from, to, expected) in [
            (
                None,
                None,
                None,
                "[2025-12-31T23:01:00Z, 2026-01-01T00:01:00Z)",
            ),
            (
                Some("24h"),
                None,
                None,
                "[2025-12-31T00:01:00Z, 2026-01-01T00:01:00Z)",
            ),
            (
                Some("15m"),
                None,
                Some("2026-01-31T00:00:00Z"),
                "[2026-01-30T23:45:00Z, 2026-01-31T00:00:00Z)",
            ),
            (
                None,
                Some("2025-12-31T12:00:30Z"),
                None,
                "[2025-12-31T12:00:30Z, 2026-01-01T00:01:00Z)",
            ),
            (
                None,
                Some("2025-12-31T12:00:00+01:00"),
                Some("2025-12-31T12:00:00Z"),
                "[2025-12-31T11:00:00Z, 2025-12-31T12:00:00Z)",
            ),
        ] {
            let window = flags(since, from, to).window(NOW).unwrap();
            assert_eq!(format!("{window:?}"), expected);
        }
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for (since, from, to) in [
            (Some("0h"), None, None),
            (Some("yesterday"), None, None),
            (Some("99999999w"), None, None),
            (None, Some("2026-01-01"), None),
            (None, Some("2026-01-01T00:00:00"), None),
            (
                None,
                Some("2026-02-01T00:00:00Z"),
                Some("2026-01-01T00:00:00Z"),
            ),
        ] {
            let failure = flags(since, from, to).window(NOW).unwrap_err();
            assert!(failure.text.contains("want"), "{failure}");
        }
    }
}
