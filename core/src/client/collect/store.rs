//! What a collect has: the table of each window that was read, now or before.

use crate::client::question::Question;
use crate::error::{Code, Error, Result};
use crate::plan::Plan;
use crate::table::CountTable;
use crate::window::{Window, uncovered};

/// One window's counts.
pub(super) struct Reading {
    pub(super) window: Window,
    pub(super) table: CountTable,
    pub(super) origin: Origin,
}

/// Where counts are from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The caller had them.
    Given,
    /// They were stored in a checkpoint.
    Stored,
    /// They were read, and may still change if that was too early.
    Read { provisional: bool },
}

/// The readings, no two of which overlap.
///
/// They share nothing: each has its own dictionaries, which is what makes a reading cost the same
/// whatever has been read before. They are added up once, at the end.
#[derive(Default)]
pub(super) struct Store {
    /// What was there before the first call, in the order of time.
    before: Vec<Reading>,
    /// What was read since, in the order of reading.
    read: Vec<Reading>,
}

impl Store {
    /// What of a table is inside the plan.
    pub(super) fn of(have: Option<&CountTable>, question: &Question, plan: &Plan) -> Result<Self> {
        let mut store = Self::default();
        let Some(have) = have else {
            return Ok(store);
        };
        if !have.counts_all(question.metric(), question.kept()) {
            let message = format!(
                "want a table of {} by {:?} that was not filtered",
                question.metric(),
                question.kept()
            );
            return Err(Error::argument("have", Code::IncompatibleTables, message));
        }
        for (window, table) in have.split() {
            let outside = uncovered(window, plan.overlapping(window));
            if outside.is_empty() {
                store.put_before(Reading {
                    window,
                    table,
                    origin: Origin::Given,
                });
            } else if outside != [window] {
                let message =
                    format!("{window:?} reaches out of what is collected, and counts can't be cut");
                return Err(Error::argument("have", Code::UnalignedWindow, message));
            }
        }
        Ok(store)
    }

    /// The readings that were there before the first call and share any time with a window.
    pub(super) fn overlapping(&self, window: Window) -> &[Reading] {
        let first = self
            .before
            .partition_point(|reading| reading.window.end() <= window.start());
        let after = self.before[first..]
            .iter()
            .take_while(|reading| reading.window.start() < window.end());
        &self.before[first..first + after.count()]
    }

    /// What of a window was not there before the first call.
    pub(super) fn gaps_before(&self, window: Window) -> Vec<Window> {
        let overlapping = self.overlapping(window).iter();
        uncovered(window, overlapping.map(|reading| reading.window))
    }

    /// Puts a reading to those that were there before, in the place of all that it overlaps.
    pub(super) fn put_before(&mut self, reading: Reading) {
        let first = self
            .before
            .partition_point(|other| other.window.end() <= reading.window.start());
        let replaced = first..first + self.overlapping(reading.window).len();
        drop(self.before.drain(replaced));
        self.before.insert(first, reading);
    }

    pub(super) fn push(&mut self, reading: Reading) {
        self.read.push(reading);
    }

    /// What was read since the first call, in the order of reading.
    pub(super) fn read(&self) -> &[Reading] {
        &self.read
    }

    pub(super) fn len(&self) -> usize {
        self.before.len() + self.read.len()
    }

    pub(super) fn was_empty_before(&self) -> bool {
        self.before.is_empty()
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &CountTable> {
        self.before
            .iter()
            .chain(&self.read)
            .map(|reading| &reading.table)
    }

    /// All windows, sorted.
    pub(super) fn windows(&self) -> Vec<Window> {
        self.sorted(|_| true)
    }

    /// The windows whose counts may still change, sorted.
    pub(super) fn provisional(&self) -> Vec<Window> {
        self.sorted(|reading| reading.origin == Origin::Read { provisional: true })
    }

    fn sorted(&self, is_wanted: fn(&Reading) -> bool) -> Vec<Window> {
        let all = self.before.iter().chain(&self.read);
        let wanted = all.filter(|reading| is_wanted(reading));
        let mut windows: Vec<Window> = wanted.map(|reading| reading.window).collect();
        windows.sort_unstable();
        windows
    }
}
