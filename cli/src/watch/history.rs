//! The newest windows of one cluster.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use tallyfold::{Counts, TimeStep, Window};

/// The dimension values of a group, in the order of the query.
pub(crate) type Group = Rc<[String]>;

/// The counts of the newest windows. Older windows are dropped, so the memory depends only on the numbers of windows and
/// groups.
#[derive(Debug)]
pub(crate) struct History {
    step: TimeStep,
    step_ms: i64,
    length: usize,
    /// The end of the newest window that has closed, in milliseconds since 1970.
    end_ms: i64,
    /// The windows that were read or failed, by their start in milliseconds since 1970.
    slots: BTreeMap<i64, Slot>,
    groups: HashSet<Group>,
    lines: OnceCell<Vec<Line>>,
}

/// A window that was read or failed.
#[derive(Debug, Default)]
struct Slot {
    reading: Option<Reading>,
    /// Why the last attempt to read the window failed; `None` if it was successful.
    failure: Option<String>,
}

#[derive(Debug)]
struct Reading {
    rows: HashMap<Group, Counts>,
    is_settled: bool,
}

/// The progress of reading a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The window has not been read yet.
    Unread,
    /// The window could not be read.
    Failed,
    /// The window was read, and its counts may still change.
    Provisional,
    /// The counts of the window are final.
    Settled,
}

/// The counts of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The group's dimension values.
    pub(crate) group: Group,
    /// The sums of the group's counts over all windows.
    pub(crate) sums: Sums,
    /// How many more errors the newest window that was read has than the window before it; `None` if the window before it
    /// was not read.
    pub(crate) change: Option<i128>,
    /// The counts of each window in chronological order; `None` for a window that has not been read.
    pub(crate) windows: Vec<Option<Counts>>,
}

/// Sums of counts. 128 bits are enough for any number of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Events delivered.
    pub(crate) success: u128,
    /// Events not sent due to an error.
    pub(crate) errors: u128,
    /// Events filtered.
    pub(crate) filtered: u128,
}

impl Sums {
    fn add(&mut self, counts: Counts) {
        self.success += u128::from(counts.success);
        self.errors += u128::from(counts.errors);
        self.filtered += u128::from(counts.filtered);
    }

    /// Returns the share of attempts that failed: errors / (success + errors); `None` if there were no attempts.
    pub(crate) fn error_rate(self) -> Option<f64> {
        let sent = self.success + self.errors;
        (sent > 0).then(|| self.errors as f64 / sent as f64)
    }
}

impl History {
    /// Creates a history of `length` windows.
    pub(crate) fn new(step: TimeStep, length: usize, now_ms: i64) -> Self {
        let step_ms = i64::from(step.seconds()) * 1_000;
        let mut history = Self {
            step,
            step_ms,
            length,
            end_ms: i64::MIN,
            slots: BTreeMap::new(),
            groups: HashSet::new(),
            lines: OnceCell::new(),
        };
        history.advance(now_ms);
        history
    }

    /// Advances to the newest window that has closed, and drops windows that are too old.
    pub(crate) fn advance(&mut self, now_ms: i64) {
        let end_ms = now_ms.div_euclid(self.step_ms) * self.step_ms;
        if end_ms == self.end_ms {
            return;
        }
        self.end_ms = end_ms;
        self.forget_old();
    }

    fn forget_old(&mut self) {
        let span = self.span_ms();
        self.slots.retain(|start, _| span.contains(start));
        self.lines.take();
        // If the only reference to a group is in `groups`, no window contains the group.
        self.groups.retain(|group| Rc::strong_count(group) > 1);
    }

    /// Returns the time range that is shown, in milliseconds since 1970.
    pub(crate) fn span_ms(&self) -> Range<i64> {
        let length = i64::try_from(self.length).unwrap_or(i64::MAX);
        self.end_ms - length * self.step_ms..self.end_ms
    }

    /// Returns the length of a window.
    pub(crate) fn step(&self) -> TimeStep {
        self.step
    }

    /// Returns the length of a window in milliseconds.
    pub(crate) fn step_ms(&self) -> i64 {
        self.step_ms
    }

    /// Returns the starts of all windows that are shown, in chronological order and in milliseconds since 1970.
    pub(crate) fn starts(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator {
        let (start, step) = (self.span_ms().start, self.step_ms);
        // The position is far below the maximum of `i64`.
        (0..self.length).map(move |position| start + position as i64 * step)
    }

    /// Stores the counts of a window. If the window was read before, returns the change of its errors.
    pub(crate) fn settle(
        &mut self,
        window: Window,
        rows: impl IntoIterator<Item = (Vec<String>, Counts)>,
        is_settled: bool,
    ) -> Option<i128> {
        let start = window.start().unix_ms();
        // The clock of the follow may be slightly ahead of the view's, so the window may be newer than all others.
        self.advance(self.end_ms.max(window.end().unix_ms()));
        let rows = rows.into_iter();
        let rows = rows.map(|(values, counts)| (group_of(&mut self.groups, values), counts));
        let reading = Reading { rows: rows.collect(), is_settled };
        self.lines.take();
        let errors = reading.errors();
        let slot = self.slots.entry(start).or_default();
        slot.failure = None;
        let before = slot.reading.replace(reading);
        if !self.span_ms().contains(&start) {
            self.forget_old();
        }
        before.map(|before| errors - before.errors())
    }

    /// Records that a window could not be read. Counts from an earlier reading of the window stay.
    pub(crate) fn fail(&mut self, window: Window, text: String) {
        let start = window.start().unix_ms();
        if self.span_ms().contains(&start) {
            self.slots.entry(start).or_default().failure = Some(text);
        }
    }

    /// Returns the start of the newest window that could not be read, and the reason.
    pub(crate) fn failure(&self) -> Option<(i64, &str)> {
        let mut newest = self.slots.iter().rev();
        newest.find_map(|(start, slot)| Some((*start, slot.failure.as_deref()?)))
    }

    /// Returns the stage of each window, in chronological order.
    pub(crate) fn stages(&self) -> Vec<Stage> {
        self.starts()
            .map(|start| match self.slots.get(&start) {
                Some(Slot { failure: Some(_), .. }) => Stage::Failed,
                Some(Slot { reading: Some(reading), .. }) if reading.is_settled => Stage::Settled,
                Some(Slot { reading: Some(_), .. }) => Stage::Provisional,
                _ => Stage::Unread,
            })
            .collect()
    }

    /// Returns the start of the newest window that was read, in milliseconds since 1970.
    pub(crate) fn newest_ms(&self) -> Option<i64> {
        self.readings().map(|(start, _)| start).next_back()
    }

    /// Returns the start of the oldest window that is not settled, in milliseconds since 1970. If all are settled, returns
    /// their end.
    pub(crate) fn unsettled_ms(&self) -> i64 {
        let is_settled =
            |start: &i64| self.reading(*start).is_some_and(|reading| reading.is_settled);
        self.starts().find(|start| !is_settled(start)).unwrap_or(self.end_ms)
    }

    /// Returns one line for each group, sorted by group.
    pub(crate) fn lines(&self) -> &[Line] {
        self.lines.get_or_init(|| {
            let groups: HashSet<&Group> =
                self.readings().flat_map(|(_, reading)| reading.rows.keys()).collect();
            let mut lines: Vec<Line> = groups.into_iter().map(|group| self.line(group)).collect();
            lines.sort_unstable_by(|one, other| one.group.cmp(&other.group));
            lines
        })
    }

    fn line(&self, group: &Group) -> Line {
        let mut sums = Sums::default();
        let windows: Vec<Option<Counts>> = self
            .starts()
            .map(|start| {
                let counts = self.reading(start)?.rows.get(group).copied().unwrap_or_default();
                sums.add(counts);
                Some(counts)
            })
            .collect();
        let change = self.newest_ms().and_then(|newest| {
            let errors = |start: i64| {
                let rows = &self.reading(start)?.rows;
                Some(i128::from(rows.get(group).map_or(0, |counts| counts.errors)))
            };
            Some(errors(newest)? - errors(newest - self.step_ms)?)
        });
        Line { group: Rc::clone(group), sums, change, windows }
    }

    /// Returns the numbers of windows and groups in memory.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.slots.len(), self.groups.len())
    }

    fn readings(&self) -> impl DoubleEndedIterator<Item = (i64, &Reading)> {
        let slots = self.slots.range(self.span_ms());
        slots.filter_map(|(start, slot)| Some((*start, slot.reading.as_ref()?)))
    }

    fn reading(&self, start: i64) -> Option<&Reading> {
        self.slots.get(&start)?.reading.as_ref()
    }
}

/// Returns the shared copy of a group's values. Creates the copy if there is none.
fn group_of(groups: &mut HashSet<Group>, values: Vec<String>) -> Group {
    if let Some(group) = groups.get(values.as_slice()) {
        return Rc::clone(group);
    }
    let group: Group = values.into();
    groups.insert(Rc::clone(&group));
    group
}

impl Reading {
    fn errors(&self) -> i128 {
        self.rows.values().map(|counts| i128::from(counts.errors)).sum()
    }
}
