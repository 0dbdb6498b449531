//! The windows of a table as slots of equal length.

use tallyfold::{Code, Error, Result, TimeStep, Timestamp, Window};

use crate::measure::most;

/// The maximum number of slots; older slots are ignored. Slots of 15 minutes cover more than three years.
const MOST: i64 = 1 << 17;

/// Adjacent slots of equal length, and the slot of each window in a table.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// The length of a slot.
    pub(crate) step: TimeStep,
    /// The number of the first slot, counted in slots from 1970.
    first: i64,
    /// For each slot, whether the table covers all of it.
    pub(crate) known: Vec<bool>,
    /// For each slot, whether all of its counts are final.
    pub(crate) settled: Vec<bool>,
    /// For each window of the table, its slot; `None` for windows that are too old.
    pub(crate) places: Vec<Option<usize>>,
}

impl Slots {
    /// Makes slots from windows that are sorted and do not overlap. The flag of a window is true if the window is settled.
    /// Returns `None` if there are no windows.
    ///
    /// # Errors
    /// `unaligned_window` for a window that crosses the edge of a slot.
    pub(crate) fn of(
        windows: impl Iterator<Item = (Window, bool)>,
        step: TimeStep,
    ) -> Result<Option<Self>> {
        let windows: Vec<(Window, bool)> = windows.collect();
        let (Some((oldest, _)), Some((latest, _))) = (windows.first(), windows.last()) else {
            return Ok(None);
        };
        let last = number(latest.start(), step);
        let first = number(oldest.start(), step).max(last - MOST + 1);
        let length = usize::try_from(last - first + 1).unwrap_or_default();
        let mut covered = vec![0_i128; length];
        let mut slots = Self {
            step,
            first,
            known: Vec::new(),
            settled: vec![true; length],
            places: Vec::with_capacity(windows.len()),
        };
        for (window, settled) in windows {
            let end = step.after(window.start());
            if end.is_none_or(|end| end < window.end()) {
                return Err(unaligned(window, step));
            }
            let place = usize::try_from(number(window.start(), step) - first).ok();
            slots.places.push(place);
            if let Some(place) = place {
                covered[place] += window.end().unix_ns() - window.start().unix_ns();
                slots.settled[place] &= settled;
            }
        }
        let whole = i128::from(step.seconds()) * 1_000_000_000;
        slots.known = covered.into_iter().map(|covered| covered == whole).collect();
        Ok(Some(slots))
    }

    /// Returns these slots without the first `first` slots.
    pub(crate) fn without(&self, first: usize) -> Self {
        let first = first.min(self.len());
        let places = self.places.iter();
        Self {
            step: self.step,
            first: self.first.saturating_add(i64::try_from(first).unwrap_or(i64::MAX)),
            known: self.known[first..].to_vec(),
            settled: self.settled[first..].to_vec(),
            places: places.map(|place| place.and_then(|place| place.checked_sub(first))).collect(),
        }
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of the first slot, counted in slots from 1970.
    pub(crate) fn first(&self) -> i64 {
        self.first
    }

    /// Returns how many slots cover this many seconds, rounded up; at least one.
    pub(crate) fn in_seconds(&self, seconds: u64) -> usize {
        let slots = seconds.div_ceil(self.step.seconds().into()).max(1);
        usize::try_from(slots).unwrap_or(usize::MAX)
    }

    /// Returns the first slot that begins at a timestamp or later.
    pub(crate) fn from(&self, instant: Timestamp) -> usize {
        let number = number(instant, self.step);
        let begun = i64::from(self.step.floor(instant) < instant);
        usize::try_from(number + begun - self.first).unwrap_or_default().min(self.len())
    }

    /// Returns the window of `slots` adjacent slots that ends with this slot.
    pub(crate) fn window(&self, slot: usize, slots: usize) -> Option<Window> {
        let start = self.instant((slot + 1).saturating_sub(slots.max(1)))?;
        Window::new(start, self.instant(slot + 1)?).ok()
    }

    /// Returns when a slot begins.
    pub(crate) fn instant(&self, slot: usize) -> Option<Timestamp> {
        let number = self.first.checked_add(i64::try_from(slot).ok()?)?;
        Timestamp::from_unix_ms(number.checked_mul(i64::from(self.step.seconds()) * 1_000)?)
    }

    /// Returns the position of a slot in `other`, whose slots have the same length; `None` if the slot is before the
    /// first slot of `other`.
    pub(crate) fn place_in(&self, other: &Self, slot: usize) -> Option<usize> {
        let place = i64::try_from(slot).ok()?;
        usize::try_from(place.checked_add(self.first - other.first)?).ok()
    }

    /// Returns, for each slot, whether it is known and settled.
    pub(crate) fn final_ones(&self) -> Vec<bool> {
        let both = self.known.iter().zip(&self.settled);
        both.map(|(known, settled)| *known && *settled).collect()
    }
}

fn number(instant: Timestamp, step: TimeStep) -> i64 {
    instant.unix_ms().div_euclid(i64::from(step.seconds()) * 1_000)
}

fn unaligned(window: Window, step: TimeStep) -> Error {
    let message =
        format!("{window:?} does not fit into a window of {step}, the length that the rules judge");
    Error::argument("window", Code::UnalignedWindow, message)
}

/// Running totals of the known counts of a group.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    parts: Vec<u128>,
    wholes: Vec<u128>,
    known: Vec<u32>,
}

/// The sums of some slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// The events that are counted.
    pub(crate) part: u64,
    /// The events that the part is a share of.
    pub(crate) whole: u64,
    /// How many of the slots are known.
    pub(crate) known: usize,
}

impl Sums {
    /// Adds up the counts of the known slots.
    pub(crate) fn new(parts: &[u64], wholes: Option<&[u64]>, known: &[bool]) -> Self {
        let mut sums = Self { parts: vec![0], wholes: vec![0], known: vec![0] };
        let (mut part, mut whole, mut count) = (0_u128, 0_u128, 0_u32);
        for (slot, known) in known.iter().enumerate() {
            if *known {
                part += u128::from(parts[slot]);
                whole += u128::from(wholes.map_or(0, |wholes| wholes[slot]));
                count += 1;
            }
            sums.parts.push(part);
            sums.wholes.push(whole);
            sums.known.push(count);
        }
        sums
    }

    /// Returns the sums over the `length` slots before the slot `end`. Slots before the first one count as unknown.
    pub(crate) fn before(&self, end: usize, length: usize) -> Sum {
        let end = end.min(self.parts.len() - 1);
        let start = end.saturating_sub(length);
        Sum {
            part: most(self.parts[end] - self.parts[start]),
            whole: most(self.wholes[end] - self.wholes[start]),
            known: (self.known[end] - self.known[start]) as usize,
        }
    }
}
