//! Windows of a quarter of an hour, and the local time of each zone in them.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Weekday};

/// Lengths in windows of a quarter of an hour.
pub(super) const HOUR: usize = 4;
pub(super) const DAY: usize = 24 * HOUR;
pub(super) const WEEK: usize = 7 * DAY;
const WINDOW_MS: i64 = 15 * 60_000;

/// The time zone of a source's users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    Utc,
    London,
    Berlin,
    NewYork,
    LosAngeles,
    Tokyo,
    Sydney,
}

/// A clock change: the month, the number of the Sunday in the month, and the hour UTC. The last Sunday has the number 5.
/// In UTC, Sydney's changes fall on the Saturday before, so their hour is negative.
type Change = (u32, u8, i64);

impl Zone {
    pub(super) const ALL: [Self; 7] = [
        Self::Utc,
        Self::London,
        Self::Berlin,
        Self::NewYork,
        Self::LosAngeles,
        Self::Tokyo,
        Self::Sydney,
    ];

    /// Hours ahead of UTC in winter.
    const fn hours(self) -> i64 {
        match self {
            Self::Utc | Self::London => 0,
            Self::Berlin => 1,
            Self::NewYork => -5,
            Self::LosAngeles => -8,
            Self::Tokyo => 9,
            Self::Sydney => 10,
        }
    }

    /// When summer time begins and ends.
    const fn summer(self) -> Option<[Change; 2]> {
        match self {
            Self::Utc | Self::Tokyo => None,
            Self::London | Self::Berlin => Some([(3, 5, 1), (10, 5, 1)]),
            Self::NewYork => Some([(3, 2, 7), (11, 1, 6)]),
            Self::LosAngeles => Some([(3, 2, 10), (11, 1, 9)]),
            Self::Sydney => Some([(10, 1, -8), (4, 1, -8)]),
        }
    }

    /// Hours ahead of UTC at a time.
    fn hours_at(self, utc: NaiveDateTime) -> i64 {
        let Some(changes) = self.summer() else {
            return self.hours();
        };
        let [begin, end] = changes.map(|change| instant(utc.year(), change));
        let is_summer = match begin < end {
            true => (begin..end).contains(&utc),
            false => utc >= begin || utc < end,
        };
        self.hours() + i64::from(is_summer)
    }
}

fn instant(year: i32, (month, number, hour): Change) -> NaiveDateTime {
    let sunday = |number| NaiveDate::from_weekday_of_month_opt(year, month, Weekday::Sun, number);
    let day = sunday(number).or_else(|| sunday(4)).unwrap_or_default();
    day.and_time(chrono::NaiveTime::MIN) + chrono::TimeDelta::hours(hour)
}

/// The windows of a simulation: their starts and their local times.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    first_ms: i64,
    /// For each zone and each window, by how many windows its clocks are ahead of UTC.
    ahead: Vec<Vec<i64>>,
}

impl Clock {
    /// Creates a clock for windows from a Monday at midnight UTC. Without clock changes, it is always winter time.
    pub(super) fn new(monday: NaiveDate, windows: usize, has_changes: bool) -> Self {
        let midnight = monday.and_time(chrono::NaiveTime::MIN);
        let first_ms = midnight.and_utc().timestamp_millis();
        let hours = |zone: Zone, at: usize| match has_changes {
            true => zone.hours_at(midnight + chrono::TimeDelta::minutes(15 * at as i64)),
            false => zone.hours(),
        };
        let ahead = |zone: Zone| (0..windows).map(|at| hours(zone, at) * HOUR as i64).collect();
        Self { first_ms, ahead: Zone::ALL.into_iter().map(ahead).collect() }
    }

    /// The start of a window, in milliseconds since 1970.
    pub(super) fn start_ms(&self, at: usize) -> i64 {
        self.first_ms + at as i64 * WINDOW_MS
    }

    /// The window that starts at a time.
    pub(super) fn window(&self, start_ms: i64) -> usize {
        usize::try_from((start_ms - self.first_ms) / WINDOW_MS).unwrap_or_default()
    }

    /// The local day, counted from a Monday, and the quarter of an hour of that day.
    pub(super) fn local(&self, zone: Zone, at: usize) -> (usize, usize) {
        // Adds a week, so that no local day is negative.
        let local = (WEEK + at) as i64 + self.ahead[zone as usize][at];
        let local = usize::try_from(local).unwrap_or_default();
        (local / DAY, local % DAY)
    }

    /// The windows in which a zone's clocks change.
    pub(super) fn changes(&self, zone: Zone) -> impl Iterator<Item = usize> {
        let pairs = self.ahead[zone as usize].windows(2).enumerate();
        pairs.filter_map(|(at, pair)| (pair[0] != pair[1]).then_some(at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_change_when_those_of_their_zone_do() {
        let hours = |zone: Zone, text: &str| {
            zone.hours_at(NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap())
        };
        assert_eq!(hours(Zone::Berlin, "2026-03-29 00:45"), 1);
        assert_eq!(hours(Zone::Berlin, "2026-03-29 01:00"), 2);
        assert_eq!(hours(Zone::London, "2026-10-25 00:45"), 1);
        assert_eq!(hours(Zone::London, "2026-10-25 01:00"), 0);
        assert_eq!(hours(Zone::NewYork, "2026-03-08 06:45"), -5);
        assert_eq!(hours(Zone::NewYork, "2026-03-08 07:00"), -4);
        assert_eq!(hours(Zone::LosAngeles, "2026-11-01 08:45"), -7);
        assert_eq!(hours(Zone::LosAngeles, "2026-11-01 09:00"), -8);
        assert_eq!(hours(Zone::Sydney, "2026-10-03 15:45"), 10);
        assert_eq!(hours(Zone::Sydney, "2026-10-03 16:00"), 11);
        assert_eq!(hours(Zone::Sydney, "2026-04-04 15:45"), 11);
        assert_eq!(hours(Zone::Sydney, "2026-04-04 16:00"), 10);
        assert_eq!(hours(Zone::Tokyo, "2026-07-01 00:00"), 9);
    }

    #[test]
    fn a_local_day_follows_the_clock() {
        let monday = NaiveDate::from_ymd_opt(2026, 3, 23).unwrap();
        let clock = Clock::new(monday, 2 * WEEK, true);
        assert_eq!(clock.changes(Zone::Berlin).collect::<Vec<_>>(), [6 * DAY + 4]);
        assert_eq!(clock.local(Zone::Berlin, 0), (7, 4));
        assert_eq!(clock.local(Zone::Berlin, WEEK), (14, 8));
        assert_eq!(clock.local(Zone::NewYork, 0), (6, 80));
        let calm = Clock::new(monday, 2 * WEEK, false);
        assert_eq!(calm.changes(Zone::Berlin).count(), 0);
        assert_eq!(calm.window(calm.start_ms(77)), 77);
    }
}
