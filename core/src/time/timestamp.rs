//! Timestamps in UTC.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Timelike, Utc};

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};

/// A timestamp in UTC, exact to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Parses a timestamp as RFC 3339 writes it: `2026-01-31T09:15:00Z` as the service uses it
    /// (service reference 4.4 and 8), or with an offset from UTC, `2026-01-31T10:15:00+01:00`. A
    /// second may have a fraction of up to nine digits.
    ///
    /// # Errors
    /// `invalid_timestamp` for anything else, such as a text with neither `Z` nor an offset, a leap
    /// second, lower-case letters, or a timestamp outside of the years 0000 to 9999 in UTC.
    pub fn parse(text: &str) -> Result<Self> {
        Self::named_by(text).ok_or_else(|| {
            let message = "want a date and time with Z or an offset from UTC, such as \
                           2026-01-31T09:15:00Z or 2026-01-31T10:15:00+01:00";
            Error::new(Code::InvalidTimestamp, message)
        })
    }

    /// The timestamp that the text stands for; `None` if it is not a timestamp.
    pub(crate) fn named_by(text: &str) -> Option<Self> {
        let (local, ahead_s) = split_zone(text.as_bytes())?;
        let (whole, fraction) = local.split_at_checked(19)?;
        if [4, 7, 10, 13, 16].map(|at| whole[at]) != *b"--T::" {
            return None;
        }
        let part = |from, to| number(&whole[from..to]);
        let nanos = match fraction {
            [] => 0,
            [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
                number(digits)? * 10_u32.pow(9 - digits.len() as u32)
            }
            _ => return None,
        };
        let clock = [part(11, 13)?, part(14, 16)?, part(17, 19)?];
        let local = Self::of(part(0, 4)?, part(5, 7)?, part(8, 10)?, clock, nanos)?;
        Self::since_1970(local.0.timestamp() - ahead_s, nanos)
    }

    /// The timestamp with this date and time of day in UTC, if it exists.
    pub(crate) fn of(
        year: u32,
        month: u32,
        day: u32,
        [hour, minute, second]: [u32; 3],
        nanos: u32,
    ) -> Option<Self> {
        let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
        let instant = day.and_hms_nano_opt(hour, minute, second, nanos)?;
        Some(Self(instant.and_utc()))
    }

    /// The timestamp this long after 1970-01-01T00:00:00Z, if it is in the years 0000 to 9999.
    fn since_1970(seconds: i64, nanos: u32) -> Option<Self> {
        let instant = DateTime::from_timestamp(seconds, nanos)?;
        (0..=9999).contains(&instant.year()).then_some(Self(instant))
    }

    /// The year, from 0 to 9999.
    pub(crate) fn year(self) -> u32 {
        self.0.year().unsigned_abs()
    }

    /// The date in UTC, such as `2026-01-31`.
    ///
    /// ```
    /// # use tallyfold::Timestamp;
    /// let at = Timestamp::parse("2026-01-31T09:15:00Z")?;
    /// assert_eq!((at.date(), at.time()), ("2026-01-31".to_owned(), "09:15:00".to_owned()));
    /// assert_eq!(at.short(), "2026-01-31 09:15");
    /// assert_eq!(Timestamp::parse("2026-01-31T09:15:00.5Z")?.short_time(), "09:15:00.500");
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn date(self) -> String {
        self.0.date_naive().to_string()
    }

    /// The time of day in UTC, such as `09:15:00`.
    #[must_use]
    pub fn time(self) -> String {
        self.0.time().to_string()
    }

    /// The time of day in UTC without its seconds if they are 0: `09:15`.
    #[must_use]
    pub fn short_time(self) -> String {
        match self.0.time() {
            time if time.second() == 0 && time.nanosecond() == 0 => {
                format!("{:02}:{:02}", time.hour(), time.minute())
            }
            time => time.to_string(),
        }
    }

    /// The date and the time of day as tables and sentences show them: `2026-01-31 09:15`.
    #[must_use]
    pub fn short(self) -> String {
        format!("{} {}", self.date(), self.short_time())
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// Microseconds since 1970-01-01T00:00:00Z, rounded down.
    ///
    /// ```
    /// # use tallyfold::Timestamp;
    /// assert_eq!(Timestamp::parse("1969-12-31T23:59:59.999999999Z")?.unix_us(), -1);
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn unix_us(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    ///
    /// ```
    /// # use tallyfold::Timestamp;
    /// assert_eq!(Timestamp::parse("1969-12-31T23:59:59.999999999Z")?.unix_ns(), -1);
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn unix_ns(self) -> i128 {
        i128::from(self.0.timestamp()) * 1_000_000_000 + i128::from(self.0.timestamp_subsec_nanos())
    }

    /// The timestamp this number of nanoseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn from_unix_ns(unix_ns: i64) -> Option<Self> {
        let nanos = unix_ns.rem_euclid(1_000_000_000) as u32;
        Self::since_1970(unix_ns.div_euclid(1_000_000_000), nanos)
    }

    /// The timestamp this number of milliseconds after 1970-01-01T00:00:00Z; `None` outside the years
    /// 0000 to 9999.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        let nanos = unix_ms.rem_euclid(1_000) as u32 * 1_000_000;
        Self::since_1970(unix_ms.div_euclid(1_000), nanos)
    }
}

/// A date and time without its time zone, and how many seconds that is ahead of UTC.
fn split_zone(text: &[u8]) -> Option<(&[u8], i64)> {
    if let Some(local) = text.strip_suffix(b"Z") {
        return Some((local, 0));
    }
    let (local, zone) = text.split_last_chunk::<6>()?;
    let [sign @ (b'+' | b'-'), hours @ .., b':', tens, ones] = zone else {
        return None;
    };
    let (hours, minutes) = (number(hours)?, number(&[*tens, *ones])?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead_s = i64::from(hours * 60 + minutes) * 60;
    Some((local, if *sign == b'-' { -ahead_s } else { ahead_s }))
}

/// Reads a number of up to nine ASCII digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
    })
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl Parameter for Timestamp {
    const KIND: Kind = Kind::Instant;

    fn from_value(value: Value) -> Result<Self> {
        Self::parse(&String::from_value(value)?)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'_, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| de::Error::custom(error.message()))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The timestamp that chrono reads, if the text has the service's form.
    fn by_chrono(text: &str) -> Option<Timestamp> {
        // chrono also reads small letters and a minus sign that is not ASCII.
        let (date, clock) = text.split_once('T')?;
        let clock = clock.split(['Z', '+', '-']).next()?;
        let fraction = clock.split_once('.').map_or("", |(_, fraction)| fraction);
        let has_form = text.is_ascii() && !text.ends_with('z') && date.len() == 10;
        let instant = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        let is_ours = (0..=9999).contains(&instant.year()) && instant.nanosecond() < 1_000_000_000;
        (has_form && fraction.len() <= 9 && is_ours).then_some(Timestamp(instant))
    }

    proptest! {
        #[test]
        fn timestamps_are_read_as_chrono_reads_them(
            text in "[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?(Z|[+-][0-2][0-9]:[0-6][0-9])",
            at in any::<prop::sample::Index>(),
            odd in prop_oneof![3 => Just(None), 1 => any::<char>().prop_map(Some)],
        ) {
            let text: String = match odd {
                None => text,
                Some(odd) => {
                    let at = at.index(text.len());
                    text.chars().enumerate().map(|(place, c)| if place == at { odd } else { c }).collect()
                }
            };
            prop_assert_eq!(Timestamp::named_by(&text), by_chrono(&text));
        }
    }
}
