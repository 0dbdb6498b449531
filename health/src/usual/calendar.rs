//! Days, weekends, holidays, and the days on which local clocks may change.

use std::ops::Range;

use super::zone::{Zone, date_of};
use crate::columns::slots::Slots;

pub(crate) use super::zone::DAY;

/// Seconds of a week.
pub(crate) const WEEK: u64 = 7 * DAY;

/// For this many days after a clock change, slots are compared with some days before the change.
const REACH_DAYS: usize = 7 * 8 + 1;

/// Large regions whose clocks change, each with its two days of change in a year.
const CLOCKS: [[Change; 2]; 4] = [
    // North America.
    [Change::new(3, Sunday::Number(2), 1), Change::new(11, Sunday::Number(1), -1)],
    // Europe.
    [Change::new(3, Sunday::Last, 1), Change::new(10, Sunday::Last, -1)],
    // Australia.
    [Change::new(4, Sunday::Number(1), -1), Change::new(10, Sunday::Number(1), 1)],
    // New Zealand.
    [Change::new(4, Sunday::Number(1), -1), Change::new(9, Sunday::Last, 1)],
];

/// A Sunday of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sunday {
    Number(i64),
    Last,
}

/// A day on which a clock changes.
#[derive(Clone, Copy, Debug)]
struct Change {
    month: i64,
    sunday: Sunday,
    /// 1 if the clock goes forward by an hour, -1 if it goes back.
    hours: i64,
}

impl Change {
    const fn new(month: i64, sunday: Sunday, hours: i64) -> Self {
        Self { month, sunday, hours }
    }

    fn is_on(self, day: i64) -> bool {
        let (_, month, of_month, length) = date_of(day);
        month == self.month
            && match self.sunday {
                Sunday::Number(number) => (of_month - 1) / 7 == number - 1,
                Sunday::Last => of_month + 7 > length,
            }
    }
}

/// A time at which a clock may change, and by how many slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    /// The first slot that may be after the change.
    pub(crate) at: usize,
    /// How many slots later in UTC the same local time was before the change.
    pub(crate) slots: isize,
}

/// The time zone and the holidays of some groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Local {
    /// The time zone. Without one, days are in UTC, and the counts themselves show which clock they follow.
    pub(crate) zone: Option<Zone>,
    /// The holidays as days since 1970, sorted.
    pub(crate) holidays: Vec<i64>,
}

/// The days, weekends, holidays and clock changes of some slots.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// The number of slots in a day.
    pub(crate) per_day: usize,
    /// The number of slots in an hour; at least 1.
    pub(crate) per_hour: usize,
    /// The number of the first slot, counted in slots from 1970.
    first: i64,
    /// The clock changes around the slots, in chronological order; empty if the zone is known.
    shifts: Vec<Shift>,
    /// The seconds of a slot.
    step: i64,
    /// For each slot, how many seconds the local clock is ahead of UTC; empty if the zone is not known.
    ahead: Vec<i32>,
    /// The holidays as local days since 1970, sorted.
    holidays: Vec<i64>,
}

impl Calendar {
    /// Makes the calendar of some slots.
    pub(crate) fn new(slots: &Slots, local: &Local) -> Self {
        let per_day = slots.in_seconds(DAY);
        let mut calendar = Self {
            per_day,
            per_hour: slots.in_seconds(3_600),
            first: slots.first(),
            shifts: Vec::new(),
            step: i64::from(slots.step.seconds()),
            ahead: Vec::new(),
            holidays: local.holidays.clone(),
        };
        if let Some(zone) = &local.zone {
            let starts = (slots.first()..).map(|number| number * calendar.step);
            let ahead = starts.map(|start| i32::try_from(zone.ahead(start)).unwrap_or_default());
            calendar.ahead = ahead.take(slots.len()).collect();
            return calendar;
        }
        // In windows longer than an hour, a change by an hour has little effect.
        if slots.step.seconds() <= 3_600 {
            calendar.shifts = calendar.changes(slots.len());
        }
        calendar
    }

    /// Returns the times at which the clocks of any of these regions ([`CLOCKS`]) may change.
    fn changes(&self, slots: usize) -> Vec<Shift> {
        let mut shifts = Vec::new();
        let first_day = self.day(0) - 1;
        for day in first_day..=self.day(slots.max(1) - 1) + 1 {
            // 1970-01-01 was a Thursday.
            if (day + 4).rem_euclid(7) != 0 {
                continue;
            }
            let mut hours: Vec<i64> = CLOCKS
                .iter()
                .flatten()
                .filter(|change| change.is_on(day))
                .map(|change| change.hours)
                .collect();
            hours.dedup();
            // New Zealand's clocks change on Saturday at 14:00 UTC, so a change may happen from noon of that day on.
            let begin = day * self.per_day as i64 - self.first - self.per_day as i64 / 2;
            let at = usize::try_from(begin).unwrap_or_default();
            for hours in hours {
                let slots = hours as isize * self.per_hour as isize;
                shifts.push(Shift { at, slots });
            }
        }
        shifts
    }

    /// Returns how many seconds the local clock is ahead of UTC in a slot.
    fn ahead(&self, slot: usize) -> i64 {
        self.ahead.get(slot).copied().unwrap_or_default().into()
    }

    /// Returns the number of the local day that contains the middle of a slot, counted from 1970.
    fn day(&self, slot: usize) -> i64 {
        let number = i64::try_from(slot).unwrap_or(i64::MAX);
        self.first
            .saturating_add(number)
            .saturating_mul(self.step)
            .saturating_add(self.step / 2 + self.ahead(slot))
            .div_euclid(DAY as i64)
    }

    /// Returns whether a slot is on a holiday.
    pub(crate) fn is_holiday(&self, slot: usize) -> bool {
        !self.holidays.is_empty() && self.holidays.binary_search(&self.day(slot)).is_ok()
    }

    /// Returns how many more whole slots the local clock is ahead of UTC in `slot` than in `other`.
    pub(crate) fn moved(&self, slot: usize, other: usize) -> isize {
        ((self.ahead(slot) - self.ahead(other)) / self.step) as isize
    }

    /// Returns the number of the first slot, counted from 1970. Code that uses every n-th slot adds this number, so that the
    /// slots it uses don't depend on the first slot.
    pub(crate) fn offset(&self) -> usize {
        usize::try_from(self.first).unwrap_or_default()
    }

    /// Returns whether a slot is on a Saturday or Sunday.
    pub(crate) fn is_weekend(&self, slot: usize) -> bool {
        matches!((self.day(slot) + 4).rem_euclid(7), 0 | 6)
    }

    /// Returns the slots of the `days` UTC days before the UTC day that contains a slot. Days before the first slot are
    /// left out.
    pub(crate) fn days_before(&self, slot: usize, days: usize) -> Range<usize> {
        let number = self.first.saturating_add(i64::try_from(slot).unwrap_or(i64::MAX));
        let within = usize::try_from(number.rem_euclid(self.per_day as i64)).unwrap_or_default();
        let end = slot.saturating_sub(within);
        end.saturating_sub(days * self.per_day)..end
    }

    /// Returns the clock changes that lie between a slot and the slots that it may be compared with.
    pub(crate) fn shifts(&self, slot: usize) -> impl Iterator<Item = Shift> + use<'_> {
        let reach = REACH_DAYS * self.per_day;
        let shifts = self.shifts.iter().copied();
        shifts.filter(move |shift| shift.at <= slot && slot < shift.at + reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyfold::{TimeStep, Timestamp, Window};

    fn slots(from: &str, to: &str, hours: i64) -> Slots {
        let [start, end] = [from, to].map(|text| Timestamp::parse(text).unwrap());
        let step_ms = hours * 3_600_000;
        let step = TimeStep::from_seconds(hours as u64 * 3_600).unwrap();
        let count = (end.unix_ms() - start.unix_ms()) / step_ms;
        let windows = (0..count).map(|slot| {
            let at = |slot: i64| Timestamp::from_unix_ms(start.unix_ms() + slot * step_ms).unwrap();
            (Window::new(at(slot), at(slot + 1)).unwrap(), true)
        });
        Slots::of(windows, step).unwrap().unwrap()
    }

    #[test]
    fn clocks_change_on_the_right_sundays() {
        let slots = slots("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", 1);
        let calendar = Calendar::new(&slots, &Local::default());
        let changes = calendar.shifts.iter().map(|shift| {
            let start = slots.instant(shift.at).unwrap().to_string();
            (start[..10].to_owned(), shift.slots)
        });
        let wanted = [
            ("2026-03-07", 1),
            ("2026-03-28", 1),
            ("2026-04-04", -1),
            ("2026-09-26", 1),
            ("2026-10-03", 1),
            ("2026-10-24", -1),
            ("2026-10-31", -1),
        ];
        let wanted = wanted.map(|(day, slots)| (day.to_owned(), slots));
        assert_eq!(changes.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_weekend_is_saturday_and_sunday() {
        // A Thursday.
        let slots = slots("2026-01-01T00:00:00Z", "2026-01-08T00:00:00Z", 1);
        let calendar = Calendar::new(&slots, &Local::default());
        let weekend: Vec<bool> = (0..7).map(|day| calendar.is_weekend(day * 24)).collect();
        assert_eq!(weekend, [false, false, true, true, false, false, false]);
        assert_eq!(calendar.days_before(49, 1), 24..48);
        assert_eq!(calendar.days_before(49, 9), 0..48);
    }

    #[test]
    fn local_days_follow_the_clock_of_their_zone() {
        let slots = slots("2026-03-06T00:00:00Z", "2026-03-10T00:00:00Z", 1);
        let local = Local { zone: Zone::named("America/New_York"), holidays: vec![20_520] };
        let calendar = Calendar::new(&slots, &local);
        // Saturday begins at 5:00 UTC. Monday begins at 4:00 UTC, because the clocks have changed.
        let weekend: Vec<usize> = (0..96).filter(|slot| calendar.is_weekend(*slot)).collect();
        assert_eq!(weekend, (29..76).collect::<Vec<_>>());
        // The holiday is that Sunday.
        let holiday: Vec<usize> = (0..96).filter(|slot| calendar.is_holiday(*slot)).collect();
        assert_eq!(holiday, (53..76).collect::<Vec<_>>());
        assert_eq!(calendar.shifts(60).count(), 0);
        assert_eq!(
            [calendar.moved(60, 50), calendar.moved(50, 60), calendar.moved(5, 4)],
            [1, -1, 0]
        );
    }

    #[test]
    fn a_long_slot_belongs_to_the_local_day_of_its_middle() {
        for name in ["America/New_York", "Europe/Berlin"] {
            let local = Local {
                zone: Zone::named(name),
                // A Wednesday, 2026-04-01.
                holidays: vec![20_544],
            };
            for hours in [12, 24] {
                let slots = slots("2026-03-02T00:00:00Z", "2026-04-06T00:00:00Z", hours);
                let calendar = Calendar::new(&slots, &local);
                let holiday = (0..slots.len()).filter(|slot| calendar.is_holiday(*slot));
                let first = 30 * calendar.per_day;
                let wanted = first..first + calendar.per_day;
                assert_eq!(holiday.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
                // The change of the clocks by an hour is less than a slot.
                assert_eq!(calendar.moved(slots.len() - 1, 0), 0);
            }
        }
    }
}
