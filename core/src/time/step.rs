//! Steps: the equal lengths that a UTC day is cut into.

use std::fmt;

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::text::{duration, milliseconds};
use crate::time::timestamp::Timestamp;

/// Seconds of a UTC day, which has no leap seconds here.
const DAY: u32 = 86_400;

/// Whole seconds that cut each UTC day into equal steps; the first one starts at midnight.
///
/// ```
/// # use tallyfold::{TimeStep, Timestamp};
/// let step = TimeStep::parse("15m")?;
/// let timestamp = Timestamp::parse("2026-01-31T09:20:00.5Z")?;
/// assert_eq!(step.floor(timestamp), Timestamp::parse("2026-01-31T09:15:00Z")?);
/// assert_eq!(step.after(timestamp), Some(Timestamp::parse("2026-01-31T09:30:00Z")?));
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeStep {
    /// A divisor of [`DAY`].
    seconds: u32,
}

impl TimeStep {
    /// A minute.
    pub const MINUTE: Self = Self { seconds: 60 };
    /// A quarter of an hour.
    pub const QUARTER: Self = Self { seconds: 900 };
    /// A day.
    pub const DAY: Self = Self { seconds: DAY };

    /// Parses digits and one of `s`, `m`, `h` and `d`, such as `5m`, `15m`, `1h` and `1d`.
    ///
    /// # Errors
    /// `invalid_argument` for anything else, and for a step that does not divide a day.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = &text[digits.len()..];
        let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits || !matches!(unit, "s" | "m" | "h" | "d") {
            return Err(invalid());
        }
        Self::from_seconds(milliseconds(text).ok_or_else(invalid)? / 1_000)
    }

    /// A step of this number of seconds.
    ///
    /// # Errors
    /// `invalid_argument` for a number that does not divide a day.
    pub fn from_seconds(seconds: u64) -> Result<Self> {
        match u32::try_from(seconds) {
            Ok(seconds) if seconds > 0 && DAY.is_multiple_of(seconds) => Ok(Self { seconds }),
            _ => Err(invalid()),
        }
    }

    /// How many seconds: 1 to 86,400.
    #[must_use]
    pub fn seconds(self) -> u32 {
        self.seconds
    }

    /// The start of the step that contains the timestamp; it may be before 1970.
    #[must_use]
    pub fn floor(self, instant: Timestamp) -> Timestamp {
        // The first possible timestamp is a midnight, so no step begins before it.
        Timestamp::from_unix_ms(self.floor_ms(instant)).unwrap_or(instant)
    }

    /// The end of the step that contains the timestamp, which is the start of the next step; `None`
    /// if that is the end of the year 9999.
    #[must_use]
    pub fn after(self, instant: Timestamp) -> Option<Timestamp> {
        Timestamp::from_unix_ms(self.floor_ms(instant).checked_add_unsigned(self.ms())?)
    }

    /// The start of the step that contains the timestamp, in milliseconds since 1970. Each day
    /// since then has a whole number of steps, and `unix_ms` rounds down.
    fn floor_ms(self, instant: Timestamp) -> i64 {
        let ms = i64::from(self.seconds) * 1_000;
        instant.unix_ms().div_euclid(ms) * ms
    }

    /// How many milliseconds: up to 86,400,000.
    pub(crate) fn ms(self) -> u64 {
        u64::from(self.seconds) * 1_000
    }
}

/// Written in the largest unit that gives a whole number: `15m`, `1h`, `90m`, `1d`.
impl fmt::Display for TimeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            DAY => f.write_str("1d"),
            _ => f.write_str(&duration(self.ms())),
        }
    }
}

impl fmt::Debug for TimeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Parameter for TimeStep {
    const KIND: Kind = Kind::Step;

    fn from_value(value: Value) -> Result<Self> {
        Self::parse(&String::from_value(value)?)
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

fn invalid() -> Error {
    let message = "want a step that divides a day, such as 5m, 15m, 1h or 1d";
    Error::argument("step", Code::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn steps_are_read_and_shown_in_the_largest_unit() {
        for (text, seconds, shown) in [
            ("1s", 1, "1s"),
            ("90s", 90, "90s"),
            ("300s", 300, "5m"),
            ("5m", 300, "5m"),
            ("05m", 300, "5m"),
            ("60m", 3_600, "1h"),
            ("90m", 5_400, "90m"),
            ("24h", 86_400, "1d"),
            ("86400s", 86_400, "1d"),
            ("1d", 86_400, "1d"),
        ] {
            let step = TimeStep::parse(text).unwrap();
            assert_eq!((step.seconds(), step.to_string().as_str()), (seconds, shown));
            assert_eq!(TimeStep::from_seconds(u64::from(seconds)), Ok(step));
        }
    }

    #[test]
    fn what_does_not_divide_a_day_is_refused() {
        for text in [
            "",
            "m",
            "5",
            "0m",
            "0d",
            "7m",
            "25h",
            "2d",
            "-5m",
            "+5m",
            "5 m",
            " 5m",
            "5m ",
            "5M",
            "5min",
            "1.5h",
            "1h30m",
            "٥m",
            "5µ",
            "18446744073709551617s",
            "18446744073709551616d",
            // Products that would wrap around to a divisor of a day.
            "922337203685477581m",
            "16012798675095097d",
        ] {
            let error = TimeStep::parse(text).expect_err(text);
            assert_eq!(
                (error.code(), error.argument_name()),
                (Code::InvalidArgument, Some("step")),
                "{text}"
            );
        }
        for seconds in [0, 7, 86_401, 172_800, 1 << 32, u64::MAX] {
            assert!(TimeStep::from_seconds(seconds).is_err(), "{seconds}");
        }
    }

    #[test]
    fn an_instant_is_in_one_step_also_before_1970() {
        for (step, at, floor, after) in [
            (
                "1d",
                "1969-12-31T23:59:59.999999999Z",
                "1969-12-31T00:00:00Z",
                "1970-01-01T00:00:00Z",
            ),
            ("1d", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"),
            ("15m", "1969-12-31T23:45:00Z", "1969-12-31T23:45:00Z", "1970-01-01T00:00:00Z"),
            (
                "15m",
                "1969-12-31T23:44:59.999999999Z",
                "1969-12-31T23:30:00Z",
                "1969-12-31T23:45:00Z",
            ),
            (
                "1s",
                "1969-12-31T23:59:58.000000001Z",
                "1969-12-31T23:59:58Z",
                "1969-12-31T23:59:59Z",
            ),
            (
                "1h",
                "2024-02-29T23:00:00.000000001Z",
                "2024-02-29T23:00:00Z",
                "2024-03-01T00:00:00Z",
            ),
            ("1d", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "0000-01-02T00:00:00Z"),
            ("90m", "2026-01-01T23:59:59Z", "2026-01-01T22:30:00Z", "2026-01-02T00:00:00Z"),
        ] {
            let step = TimeStep::parse(step).unwrap();
            assert_eq!(step.floor(instant(at)), instant(floor), "{step} {at}");
            assert_eq!(step.after(instant(at)), Some(instant(after)), "{step} {at}");
        }
        let last = instant("9999-12-31T23:59:59.999999999Z");
        let day = TimeStep::parse("1d").unwrap();
        assert_eq!(day.floor(last), instant("9999-12-31T00:00:00Z"));
        assert_eq!(day.after(last), None);
    }
}
