//! Time zones, with the current rules for their clocks. Earlier rules aren't needed, because checks read only the counts of
//! recent months.

/// Seconds of a day.
pub(crate) const DAY: u64 = 86_400;

/// A line for each clock, with the names of its zones. `scripts/zones.py` writes this file.
const CLOCKS: &str = include_str!("zones.txt");

/// How far a zone's clocks are ahead of UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    /// How far clocks are ahead of UTC outside of `summer`, in seconds.
    standard: i64,
    summer: Option<Summer>,
}

/// The part of the year in which clocks differ from the standard time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summer {
    /// How far clocks are ahead of UTC, in seconds.
    ahead: i64,
    begin: Change,
    end: Change,
}

/// When clocks change each year: on a weekday of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    month: i64,
    /// The number of the weekday in the month, from 1; 5 is the last one.
    week: i64,
    /// The weekday, from 0 for Sunday.
    weekday: i64,
    /// The time of the change on the clock that is about to change, in seconds from midnight. Negative or large values
    /// are on another day.
    seconds: i64,
}

impl Zone {
    /// Returns the zone with a name of the time zone database, such as `America/New_York`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let line = lines().find(|(_, names)| names.split(' ').any(|own| own == name));
        read(line?.0)
    }

    /// Returns the names of all zones.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        lines().flat_map(|(_, names)| names.split(' '))
    }

    /// Returns how many seconds clocks are ahead of UTC. `unix_s` is the time in seconds since 1970.
    pub(crate) fn ahead(&self, unix_s: i64) -> i64 {
        let Some(summer) = &self.summer else {
            return self.standard;
        };
        let (year, _, _, _) = date_of((unix_s + self.standard).div_euclid(DAY as i64));
        let begin = summer.begin.instant(year) - self.standard;
        let end = summer.end.instant(year) - summer.ahead;
        let is_summer = match begin < end {
            true => (begin..end).contains(&unix_s),
            false => !(end..begin).contains(&unix_s),
        };
        match is_summer {
            true => summer.ahead,
            false => self.standard,
        }
    }
}

impl Change {
    /// Returns when the clocks change in a year, in seconds since 1970 by the local clock.
    fn instant(&self, year: i64) -> i64 {
        let first = day_of(year, self.month);
        // 1970-01-01 was a Thursday.
        let skipped = (self.weekday - (first + 4)).rem_euclid(7);
        let mut day = skipped + 7 * (self.week - 1);
        let (_, _, _, length) = date_of(first);
        while day >= length {
            day -= 7;
        }
        (first + day) * DAY as i64 + self.seconds
    }
}

/// Returns the clocks, each with the names of its zones.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLOCKS.lines().filter_map(|line| line.split_once(": "))
}

/// Reads a clock such as `-18000 -14400 3.2.0/7200 11.1.0/7200`.
fn read(clock: &str) -> Option<Zone> {
    let mut fields = clock.split(' ');
    let standard = fields.next()?.parse().ok()?;
    let summer = match fields.next() {
        Some(ahead) => Some(Summer {
            ahead: ahead.parse().ok()?,
            begin: change(fields.next()?)?,
            end: change(fields.next()?)?,
        }),
        None => None,
    };
    Some(Zone { standard, summer })
}

fn change(text: &str) -> Option<Change> {
    let (date, seconds) = text.split_once('/')?;
    let mut numbers = date.split('.').map(|number| number.parse().ok());
    Some(Change {
        month: numbers.next()??,
        week: numbers.next()??,
        weekday: numbers.next()??,
        seconds: seconds.parse().ok()?,
    })
}

/// Returns the year, the month and the day of the month of a day since 1970, and the number of days in the month.
pub(crate) fn date_of(day: i64) -> (i64, i64, i64, i64) {
    // This is the era-based calendar algorithm of Howard Hinnant, in which years begin in March.
    let since_0000 = day + 719_468;
    let era = since_0000.div_euclid(146_097);
    let of_era = since_0000.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let from_january = 400 * era + year + i64::from(month <= 2);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap(from_january)),
        _ => 31,
    };
    (from_january, month, of_month, length)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the first day of a month, counted from 1970.
pub(crate) fn day_of(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let of_era = year.rem_euclid(400);
    year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyfold::Timestamp;

    fn hours(zone: &str, at: &str) -> f64 {
        let at = Timestamp::parse(at).unwrap().unix_ms() / 1_000;
        Zone::named(zone).unwrap().ahead(at) as f64 / 3_600.0
    }

    #[test]
    fn every_clock_is_read() {
        for (clock, _) in lines() {
            assert!(read(clock).is_some(), "{clock}");
        }
        assert!(Zone::names().count() > 500);
        assert_eq!(Zone::named("America/New_york"), None);
    }

    #[test]
    fn clocks_change_at_the_right_time() {
        for (zone, at, wanted) in [
            ("UTC", "2026-07-01T00:00:00Z", 0.0),
            ("Asia/Kolkata", "2026-07-01T00:00:00Z", 5.5),
            ("Europe/Berlin", "2026-03-29T00:59:59Z", 1.0),
            ("Europe/Berlin", "2026-03-29T01:00:00Z", 2.0),
            ("Europe/Berlin", "2026-10-25T00:59:59Z", 2.0),
            ("Europe/Berlin", "2026-10-25T01:00:00Z", 1.0),
            ("America/New_York", "2026-03-08T06:59:59Z", -5.0),
            ("America/New_York", "2026-03-08T07:00:00Z", -4.0),
            ("America/New_York", "2026-11-01T06:00:00Z", -5.0),
            ("Australia/Sydney", "2026-04-04T15:59:59Z", 11.0),
            ("Australia/Sydney", "2026-04-04T16:00:00Z", 10.0),
            ("Australia/Sydney", "2027-01-01T00:00:00Z", 11.0),
            // Ireland's standard time is its summer time, so `summer` is in winter.
            ("Europe/Dublin", "2026-01-01T00:00:00Z", 0.0),
            ("Europe/Dublin", "2026-07-01T00:00:00Z", 1.0),
            // Clocks change on the Friday before the last Sunday, at 2:00.
            ("Asia/Jerusalem", "2026-03-26T23:59:59Z", 2.0),
            ("Asia/Jerusalem", "2026-03-27T00:00:00Z", 3.0),
        ] {
            assert_eq!(hours(zone, at), wanted, "{zone} at {at}");
        }
    }

    #[test]
    fn days_are_converted_to_dates_and_back() {
        for (day, date) in [
            (-1, (1969, 12, 31, 31)),
            (0, (1970, 1, 1, 31)),
            (11_016, (2000, 2, 29, 29)),
            (20_454, (2026, 1, 1, 31)),
            (20_513, (2026, 3, 1, 31)),
        ] {
            assert_eq!(date_of(day), date);
            assert_eq!(day_of(date.0, date.1), day + 1 - date.2);
        }
    }
}
