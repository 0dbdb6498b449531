//! Checks whether a group's parts keep their shares of its events.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Key};

use super::calendar::WEEK;
use super::past::is_batch;
use crate::columns::groups::Grid;
use crate::columns::slots::Slots;
use crate::measure::{Measure, most};

/// The mix is compared with the same times in this many earlier weeks.
const WEEKS: usize = 2;

/// A part may deviate from its expected count by this share of the count, plus this many standard deviations of a Poisson
/// count.
const PART: f64 = 0.3;
const DEVIATIONS: f64 = 3.0;

/// The mix has changed if more than this share of all events is in other parts than before.
const CHANGED: f64 = 0.1;

/// The parts of a group. Their counts are read at the first use.
pub(crate) struct Parts<'m> {
    pub(crate) grid: &'m Grid<'m>,
    pub(crate) group: usize,
    pub(crate) slots: &'m Slots,
    pub(crate) measure: Measure,
    /// The first slot whose mix is needed.
    pub(crate) from: usize,
    pub(crate) mix: Option<Mix>,
}

impl Parts<'_> {
    /// Returns the counts of the parts, and reads them at the first call.
    pub(crate) fn mix(&mut self) -> &Mix {
        let (grid, group) = (self.grid, self.group);
        self.mix
            .get_or_insert_with(|| Mix::read((grid, group), self.slots, self.measure, self.from))
    }
}

/// The counts of a group's parts. Each part has its own values in the dimensions that the group leaves open, except
/// reasons.
pub(crate) struct Mix {
    /// The first slot.
    first: usize,
    /// How many slots make a week.
    week: usize,
    /// For each part, the running totals of its events from the first slot on.
    parts: Vec<Vec<u64>>,
}

impl Mix {
    /// Reads the parts of a group. The first slot is two weeks before the slot `from`.
    fn read(
        (grid, group): (&Grid<'_>, usize),
        slots: &Slots,
        measure: Measure,
        from: usize,
    ) -> Self {
        let week = slots.in_seconds(WEEK);
        let first = from.saturating_sub(WEEKS * week);
        let own = grid.dimensions();
        // We assume that only filtered events have a reason: the service's reference does not say.
        let is_part =
            |dimension: &Dimension| *dimension != Dimension::Reason && !own.contains(dimension);
        let columns = grid.counted().dimensions.iter().enumerate();
        let columns = columns.filter(|(_, dimension)| is_part(dimension));
        let columns: Vec<usize> = columns.map(|(column, _)| column).collect();
        let part_of = |row: &Key| {
            let mut part = Key::default();
            for column in &columns {
                part[*column] = row[*column];
            }
            part
        };
        let length = slots.len().saturating_sub(first);
        let mut parts: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        grid.each_row(
            group,
            slots,
            |slot| slot >= first,
            |row, slot, counts| {
                let part = parts.entry(part_of(row));
                let part = part.or_insert_with(|| vec![0; length + 1]);
                let count = &mut part[slot - first + 1];
                *count = count.saturating_add(most(measure.part(counts)));
            },
        );
        let mut parts: Vec<Vec<u64>> = parts.into_values().collect();
        for part in &mut parts {
            let mut sum = 0_u64;
            for count in part {
                sum = sum.saturating_add(*count);
                *count = sum;
            }
        }
        Self { first, week, parts }
    }

    /// Returns the events of a part in the `length` slots before the slot `end`, and at the same times in the earlier weeks.
    fn now_and_before(&self, part: &[u64], end: usize, length: usize) -> (f64, f64) {
        let sum = |end: Option<usize>| {
            let Some(end) = end.and_then(|end| end.checked_sub(self.first)) else {
                return 0;
            };
            let end = end.min(part.len() - 1);
            part[end] - part[end.saturating_sub(length)]
        };
        let weeks = (1..=WEEKS).map(|week| sum(end.checked_sub(week * self.week)));
        (sum(Some(end)) as f64, weeks.map(u128::from).sum::<u128>() as f64)
    }

    /// Returns whether the events of a part come in a batch once a day. It looks at the two weeks before the last day.
    fn is_batch(&self, part: &[u64], end: usize) -> bool {
        let per_day = self.week / 7;
        let of_days = |slot: usize| -> u128 {
            let days = (1..=7 * WEEKS).filter_map(|days| {
                let end = end.checked_sub(self.first + days * per_day + slot)?;
                Some(part.get(end)? - part.get(end.checked_sub(1)?)?)
            });
            days.map(u128::from).sum()
        };
        is_batch(&mut (0..per_day).map(of_days).collect::<Vec<u128>>())
    }

    /// Returns how many events are usual in the `length` slots before the slot `end`, from batches that are completely missing
    /// in these slots.
    pub(crate) fn awaited(&self, end: usize, length: usize) -> f64 {
        let batches = self.parts.iter();
        let batches = batches.filter(|part| self.is_batch(part, end));
        let pairs = batches.map(|part| self.now_and_before(part, end, length));
        let absent = pairs.filter(|(now, _)| *now <= 0.0);
        absent.map(|(_, before)| before / WEEKS as f64).sum()
    }

    /// Returns whether nearly all events of the `length` slots before the slot `end` are in the usual parts. Batches are
    /// left out, because they may come earlier or later.
    pub(crate) fn is_kept(&self, end: usize, length: usize) -> bool {
        let steady = self.parts.iter();
        let steady = steady.filter(|part| !self.is_batch(part, end));
        let pairs = steady.map(|part| self.now_and_before(part, end, length));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let add = |sums: (f64, f64), pair: &(f64, f64)| (sums.0 + pair.0, sums.1 + pair.1);
        let (now, before) = pairs.iter().fold((0.0, 0.0), add);
        if now <= 0.0 || before <= 0.0 {
            return false;
        }
        let level = now / before;
        let moved = pairs.iter().map(|(now, before)| {
            let expected = level * before;
            let noise = libm::sqrt(expected + level * expected + 1.0);
            ((now - expected).abs() - PART * expected - DEVIATIONS * noise).max(0.0)
        });
        moved.sum::<f64>() / 2.0 <= CHANGED * now
    }
}
