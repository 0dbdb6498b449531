//! Instants in UTC.

use std::fmt;

use serde::{Serialize, Serializer};

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Utc};

use crate::code::Code;
use crate::error::{Error, Result};

/// An instant in UTC, exact to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Parses UTC ISO 8601 as the service uses it: `2026-01-31T09:15:00Z`, with up to nine
    /// digits of a second's fraction (service reference 4.4 and 8).
    ///
    /// # Errors
    /// `invalid_timestamp` for anything else: an offset, a missing `Z`, a leap second.
    pub fn parse(text: &str) -> Result<Self> {
        Self::from_wire(text).ok_or_else(|| {
            let message = "want UTC ISO 8601 that ends in Z, such as 2026-01-31T09:15:00Z \
                           (a datetime must be aware of its time zone)";
            Error::new(Code::InvalidTimestamp, message)
        })
    }

    /// The instant that the text names, if it has the service's form.
    pub(crate) fn from_wire(text: &str) -> Option<Self> {
        let (whole, fraction) = text.as_bytes().strip_suffix(b"Z")?.split_at_checked(19)?;
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
        Self::of(part(0, 4)?, part(5, 7)?, part(8, 10)?, clock, nanos)
    }

    /// The instant with this date and time of day in UTC, if it exists.
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

    /// The year, from 0 to 9999.
    pub(crate) fn year(self) -> u32 {
        self.0.year().unsigned_abs()
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

    /// The instant so many milliseconds after 1970-01-01T00:00:00Z; `None` outside the years
    /// 0000 to 9999.
    #[must_use]
    pub fn from_unix_ms(unix_ms: i64) -> Option<Self> {
        let instant = DateTime::from_timestamp_millis(unix_ms)?;
        (0..=9999)
            .contains(&instant.year())
            .then_some(Self(instant))
    }
}

/// Reads a number of up to nine ASCII digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u32::from(digit - b'0'))
    })
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use chrono::Timelike;
    use proptest::prelude::*;

    use super::*;

    /// What chrono makes of it, where it has the service's form.
    fn by_chrono(text: &str) -> Option<Timestamp> {
        let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let fraction = clock.split_once('.').map_or("", |(_, fraction)| fraction);
        let instant = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        let has_form = date.len() == 10 && fraction.len() <= 9;
        (has_form && instant.nanosecond() < 1_000_000_000).then_some(Timestamp(instant))
    }

    proptest! {
        #[test]
        fn timestamps_are_read_as_chrono_reads_them(
            text in "[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?Z",
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
            prop_assert_eq!(Timestamp::from_wire(&text), by_chrono(&text));
        }
    }
}
