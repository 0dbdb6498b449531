//! Computes expected counts from the counts at the same time on earlier days.

use super::calendar::Calendar;
use crate::columns::groups::Columns;
use crate::columns::slots::Sum;
use crate::measure::most;

/// A window is compared with the same time on up to this many days before it, and on the same weekday of earlier weeks.
const DAYS: usize = 14;

/// A comparison needs at least this many earlier windows, and one more if they are the windows just before.
const FEWEST: usize = 3;

/// A share changes little during a day, so it is learned from a part of each day around the same time: a day divided by
/// this number.
const AROUND: usize = 4;

/// This many events are added to both the counted and the expected events of the hour before a rise. So a few events hardly
/// change their ratio.
const AS_USUAL: f64 = 5.0;

/// Without enough days, a share is compared with up to this many of the windows just before.
const RECENT: usize = 16;

/// The maximum number of earlier windows for a comparison: fourteen days and eight weeks.
const MOST: usize = DAYS + 8;

/// A stream sends a daily batch if at least this share of its events comes in its busiest slots, which together are an eighth
/// of the day.
const BATCH_SHARE: f64 = 0.8;
const BATCH_PART: usize = 8;

/// A clock shift. Counts of earlier days are looked up this many slots later than the same time of day. The second value, if
/// there is one, is the slot where the clock changed: only counts up to that slot are shifted.
pub(crate) type Clock = (isize, Option<usize>);

/// What is compared with earlier days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Counts.
    Counts,
    /// Shares of a whole.
    Shares,
    /// Ratios of a part to a whole. They may be above 1.
    Ratios,
}

/// Running totals of the known slots, which all groups share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(Vec<u32>);

impl Known {
    /// Adds up the known slots.
    pub(crate) fn new(known: &[bool]) -> Self {
        let mut sums = Vec::with_capacity(known.len() + 1);
        let mut sum = 0;
        sums.push(sum);
        for known in known {
            sum += u32::from(*known);
            sums.push(sum);
        }
        Self(sums)
    }

    /// Returns how many of the `length` slots before the slot `end` are known.
    fn before(&self, end: usize, length: usize) -> usize {
        let end = end.min(self.0.len() - 1);
        (self.0[end] - self.0[end.saturating_sub(length)]) as usize
    }
}

/// The counts of a group as running totals, and how they are compared.
#[derive(Debug)]
pub(crate) struct Past<'p> {
    calendar: &'p Calendar,
    pub(crate) compare: Compare,
    weeks: usize,
    neighbours: usize,
    known: &'p Known,
    parts: Vec<u128>,
    wholes: Option<Vec<u128>>,
}

/// The counted and the expected events of some slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    /// What was counted.
    pub(crate) sum: Sum,
    /// How many events of the part were expected.
    pub(crate) expected: f64,
}

impl Look {
    /// Returns how many more events were counted than expected.
    pub(crate) fn excess(&self) -> f64 {
        self.sum.part as f64 - self.expected
    }
}

impl<'p> Past<'p> {
    /// Adds up the counts of a group. Rules learn only from known slots, so other slots count as 0.
    pub(crate) fn new(
        (calendar, known): (&'p Calendar, &'p Known),
        compare: Compare,
        (weeks, neighbours): (usize, usize),
        columns: Columns<'_>,
        is_known: &[bool],
    ) -> Self {
        let sums = |counts: &[u64]| {
            let mut sums = Vec::with_capacity(counts.len() + 1);
            let mut sum = 0_u128;
            sums.push(sum);
            for (count, known) in counts.iter().zip(is_known) {
                sum += u128::from(*count) * u128::from(*known);
                sums.push(sum);
            }
            sums
        };
        Self {
            calendar,
            compare,
            weeks: weeks.clamp(1, MOST - DAYS),
            neighbours,
            known,
            parts: sums(columns.parts),
            wholes: columns.wholes.map(sums),
        }
    }

    /// Returns the sums of the known counts in the `length` slots before the slot `end`.
    pub(crate) fn sum(&self, end: usize, length: usize) -> Sum {
        let of = |sums: &[u128]| {
            let end = end.min(sums.len() - 1);
            most(sums[end] - sums[end.saturating_sub(length)])
        };
        Sum {
            part: of(&self.parts),
            whole: self.wholes.as_deref().map_or(0, of),
            known: self.known.before(end, length),
        }
    }

    /// Returns the counts of the `length` slots before the slot `end`, and how many were expected; `None` unless all
    /// slots are known.
    pub(crate) fn look(&self, end: usize, length: usize) -> Option<Look> {
        let sum = self.sum(end, length);
        if sum.known < length {
            return None;
        }
        let expected = self.expected(end, length, sum)?;
        Some(Look { sum, expected })
    }

    /// Like [`Past::look`], but if the share was above its expectation in the hour before, expects it to stay that high.
    pub(crate) fn rise(&self, end: usize, length: usize) -> Option<Look> {
        let look = self.look(end, length)?;
        let before = self.look(end.checked_sub(length)?, self.calendar.per_hour)?;
        let level = (before.sum.part as f64 + AS_USUAL) / (before.expected + AS_USUAL);
        Some(Look { expected: look.expected * level.max(1.0), ..look })
    }

    /// Like [`Past::look`], but expects events exactly at their usual time, neither early nor late. It still allows for clock
    /// changes. Normal counts of single slots may deviate from this expectation, but normal sums over some hours hardly do.
    pub(crate) fn punctual(&self, end: usize, length: usize) -> Option<Look> {
        if self.compare != Compare::Counts {
            return self.look(end, length);
        }
        let sum = self.sum(end, length);
        if sum.known < length {
            return None;
        }
        let expected = self.count(end, length, sum.part as f64, 0)?;
        Some(Look { sum, expected })
    }

    /// Returns how many events are expected in the `length` slots before the slot `end`. `sum` is what was counted in
    /// them. If several numbers are possible, it returns the number that is nearest to this count.
    pub(crate) fn expected(&self, end: usize, length: usize, sum: Sum) -> Option<f64> {
        match self.compare {
            Compare::Counts => self.count(end, length, sum.part as f64, self.neighbours),
            Compare::Shares | Compare::Ratios => Some(self.share(end, length)? * sum.whole as f64),
        }
    }

    /// Returns the expected number of events. It tries the same weekdays, the days just before and, on a holiday, days off. It
    /// returns the number that is nearest to `counted`, and stops as soon as one is near enough. The days just before are nearer
    /// if the level of the stream has changed. After a local clock has changed, earlier weeks are an hour off, so it also tries
    /// counts that are shifted by the change. Events may come up to `neighbours` slots early or late.
    fn count(&self, end: usize, length: usize, counted: f64, neighbours: usize) -> Option<f64> {
        let mut nearest = Nearest { counted, found: None };
        if self.calendar.is_holiday(end - 1) {
            nearest.offer(self.day_off(end, length));
        }
        let jitter = neighbours.min(length) as isize;
        let jitters = (1..=jitter).flat_map(|windows| [windows, -windows]);
        for shift in std::iter::once(0).chain(jitters) {
            self.counts(end, length, (shift, None), &mut nearest);
            if nearest.is_near() {
                return nearest.found;
            }
        }
        for clock in self.calendar.shifts(end - 1) {
            let clock = (clock.slots, Some(clock.at));
            self.counts(end, length, clock, &mut nearest);
        }
        nearest.found
    }

    /// Offers `nearest` the count to expect from the same weekdays. If no count is near enough, it also offers the
    /// count to expect from the last days.
    fn counts(&self, end: usize, length: usize, clock: Clock, nearest: &mut Nearest) {
        nearest.offer(self.weekdays(end, length, clock));
        if !nearest.is_near() {
            nearest.offer(self.days(end, length, clock));
        }
    }

    /// Returns the count to expect from the same weekdays.
    fn weekdays(&self, end: usize, length: usize, clock: Clock) -> Option<f64> {
        let weeks = (1..=self.weeks).map(|week| 7 * week);
        trimmed(weeks.filter_map(|days| self.entry(end, length, clock, days)))
    }

    /// Returns the count to expect from the last days of the same kind: working days, or days of a weekend.
    fn days(&self, end: usize, length: usize, clock: Clock) -> Option<f64> {
        let weekend = self.calendar.is_weekend(end - 1);
        let is_alike = |days: &usize| {
            let ago = self.days_ago(end, *days).and_then(|at| at.checked_sub(1));
            ago.is_some_and(|slot| self.calendar.is_weekend(slot) == weekend)
        };
        let days = (1..=DAYS).filter(is_alike);
        trimmed(days.filter_map(|days| self.entry(end, length, clock, days)))
    }

    /// Returns the count `days` days earlier, if it is known and the day isn't a holiday.
    fn entry(&self, end: usize, length: usize, (shift, before): Clock, days: usize) -> Option<u64> {
        let at = self.days_ago(end, days)?;
        let at = match before.is_none_or(|before| at <= before) {
            true => at.checked_add_signed(shift)?,
            false => at,
        };
        let sum = self.sum(at, length);
        let is_usual = at > 0 && !self.calendar.is_holiday(at - 1);
        (is_usual && sum.known == length).then_some(sum.part)
    }

    /// Returns the counts of some slots and their usual level. [`Past::look`] chooses the expectation that is nearest to
    /// the counts. For counts, the level is the mean of earlier days instead, so that a deviation does not become usual
    /// while it lasts. For shares, and without a mean, it is the expectation of [`Past::look`].
    pub(crate) fn level(&self, end: usize, length: usize) -> Option<Look> {
        let look = self.look(end, length)?;
        if self.compare != Compare::Counts {
            return Some(look);
        }
        Some(Look {
            expected: self.mean(end, length, self.clock(end)).unwrap_or(look.expected),
            ..look
        })
    }

    /// Returns the mean of two expected counts: from the same weekdays and from the days just before. It doesn't depend
    /// on the counts of the slots themselves, so the slots may be up to a day in the future.
    pub(crate) fn mean(&self, end: usize, length: usize, clock: Clock) -> Option<f64> {
        let weekdays = self.weekdays(end, length, clock);
        let days = self.days(end, length, clock);
        let mean = weekdays.zip(days).map(|(one, other)| (one + other) / 2.0);
        mean.or(weekdays).or(days)
    }

    /// Returns the clock shift with which the usual curve of a day fits the counts of the last day best. Only the shape
    /// of the curve matters, not its level.
    pub(crate) fn clock(&self, end: usize) -> Clock {
        const PARTS: usize = 12;
        let shifts = self.calendar.shifts(end - 1);
        let mut clocks = shifts.map(|clock| (clock.slots, Some(clock.at))).peekable();
        if clocks.peek().is_none() {
            return (0, None);
        }
        let length = (self.calendar.per_day / PARTS).max(1);
        let distance = |clock: &Clock| {
            let parts = (0..PARTS).filter_map(|part| {
                let end = end.checked_sub(part * length).filter(|end| *end > 0)?;
                let expected = self.mean(end, length, *clock)?;
                Some((self.sum(end, length).part as f64, expected))
            });
            let parts: Vec<(f64, f64)> = parts.collect();
            let add = |sums: (f64, f64), part: &(f64, f64)| (sums.0 + part.0, sums.1 + part.1);
            let (counted, expected) = parts.iter().fold((0.0, 0.0), add);
            let level = counted / expected.max(f64::MIN_POSITIVE);
            let apart = parts.iter();
            let apart = apart.map(|(counted, expected)| (counted - level * expected).abs());
            apart.sum::<f64>()
        };
        let all = std::iter::once((0, None)).chain(clocks);
        let nearest = all.min_by(|one, other| distance(one).total_cmp(&distance(other)));
        nearest.unwrap_or((0, None))
    }

    /// Returns the slot at the same local time some days before.
    fn days_ago(&self, end: usize, days: usize) -> Option<usize> {
        let at = end.checked_sub(days * self.calendar.per_day)?;
        let moved = self.calendar.moved(end.checked_sub(1)?, at.checked_sub(1)?);
        at.checked_add_signed(moved)
    }

    /// Returns how many events to expect on a day off, learned from the Saturdays and Sundays of the last three weeks.
    pub(crate) fn day_off(&self, end: usize, length: usize) -> Option<f64> {
        let entry = |days: usize| {
            let at = self.days_ago(end, days)?;
            let sum = self.sum(at, length);
            let is_off = at > 0 && self.calendar.is_weekend(at - 1);
            (is_off && sum.known == length).then_some(sum.part)
        };
        trimmed((1..=DAYS + 7).filter_map(entry))
    }

    /// Returns whether most events of a day come in a few of its slots.
    pub(crate) fn is_batch(&self, end: usize) -> bool {
        let per_day = self.calendar.per_day;
        let of_days = |slot: usize| -> u128 {
            let ends = (1..=DAYS).filter_map(|days| end.checked_sub(days * per_day + slot));
            ends.map(|end| u128::from(self.sum(end, 1).part)).sum()
        };
        is_batch(&mut (0..per_day).map(of_days).collect::<Vec<u128>>())
    }

    /// Returns the expected share. It sorts the days by their shares, and adds up the events of the middle half.
    pub(crate) fn share(&self, end: usize, length: usize) -> Option<f64> {
        let around = (self.calendar.per_day / AROUND).saturating_sub(length) / 2;
        let mut days = [Sum::default(); MOST];
        let mut count = 0;
        let weeks = (DAYS / 7 + 1..=self.weeks).map(|week| 7 * week);
        for ago in (1..=DAYS).chain(weeks) {
            let Some(end) = end.checked_sub(ago * self.calendar.per_day) else {
                break;
            };
            let sum = self.sum(end + around, length + 2 * around);
            if sum.whole > 0 {
                days[count] = sum;
                count += 1;
            }
        }
        if count < FEWEST {
            // Without enough days, the share is learned from the windows just before.
            count = 0;
            for ago in 0..RECENT {
                let sum = end.checked_sub(length + ago).map(|end| self.sum(end, 1));
                if let Some(sum) = sum.filter(|sum| sum.whole > 0) {
                    days[count] = sum;
                    count += 1;
                }
            }
            if count <= FEWEST {
                return None;
            }
        }
        let days = &mut days[..count];
        let by_share = |one: &Sum, other: &Sum| {
            let left = u128::from(one.part) * u128::from(other.whole);
            left.cmp(&(u128::from(other.part) * u128::from(one.whole)))
        };
        days.sort_unstable_by(by_share);
        let (mut part, mut whole) = (0.0, 0.0);
        for day in &days[cut(count)..count - cut(count)] {
            part += day.part as f64;
            whole += day.whole as f64;
        }
        // Adds half an event, so that a past share of 0 doesn't make events impossible.
        Some((part + 0.5) / (whole + 1.0))
    }

    /// Returns the calendar of the slots.
    pub(crate) fn calendar(&self) -> &'p Calendar {
        self.calendar
    }
}

/// Returns whether most events of a day come in a few of its slots. `of_day` has the count of each slot of the day.
pub(crate) fn is_batch(of_day: &mut [u128]) -> bool {
    of_day.sort_unstable();
    let sum: u128 = of_day.iter().sum();
    let together: u128 = of_day.iter().rev().take(of_day.len() / BATCH_PART).sum();
    sum > 0 && together as f64 >= BATCH_SHARE * sum as f64
}

/// Keeps the expected number that is nearest to `counted`.
struct Nearest {
    counted: f64,
    found: Option<f64>,
}

impl Nearest {
    fn offer(&mut self, candidate: Option<f64>) {
        let Some(candidate) = candidate else {
            return;
        };
        let distance = |number: f64| (number - self.counted).abs();
        if self.found.is_none_or(|found| distance(candidate) < distance(found)) {
            self.found = Some(candidate);
        }
    }

    /// Returns whether the difference is so small that no other candidate is needed: two standard deviations of a Poisson
    /// count, or a twentieth of the found number.
    fn is_near(&self) -> bool {
        self.found.is_some_and(|found| {
            let distance = (found - self.counted).abs();
            distance * distance <= 4.0 * found || distance <= found / 20.0
        })
    }
}

/// Returns how many numbers are left out at each end of the sorted numbers.
fn cut(count: usize) -> usize {
    ((count + 2) / 4).min((count - 1) / 2)
}

/// Returns the mean of the middle half of some numbers. Unlike the median, it isn't too low for small counts.
fn trimmed(numbers: impl Iterator<Item = u64>) -> Option<f64> {
    let mut all = [0_u64; MOST];
    let mut count = 0;
    for (place, number) in all.iter_mut().zip(numbers) {
        *place = number;
        count += 1;
    }
    if count < FEWEST {
        return None;
    }
    let all = &mut all[..count];
    all.sort_unstable();
    let middle = &all[cut(count)..count - cut(count)];
    let sum: u128 = middle.iter().map(|number| u128::from(*number)).sum();
    Some(sum as f64 / middle.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trimmed_mean_is_the_mean_of_the_middle_half() {
        let of = |numbers: &[u64]| trimmed(numbers.iter().copied());
        assert_eq!(of(&[5, 6]), None);
        assert_eq!(of(&[9, 1, 5]), Some(5.0));
        assert_eq!(of(&[0, 10, 20, 900]), Some(15.0));
        // An incident on one of six days has little effect.
        assert_eq!(of(&[10, 10, 12, 12, 11, 11]), Some(11.0));
        assert_eq!(of(&[10, 10, 12, 12, 11, 0]), Some(10.5));
        assert_eq!(of(&[10, 10, 12, 12, 11, 900]), Some(11.5));
    }
}
