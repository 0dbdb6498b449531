//! Which windows of a collect have been read, now or earlier, with their tables, and which are
//! still to be started.

use crate::code::Code;
use crate::counts::table::CountTable;
use crate::error::{Error, Result};
use crate::ranges::plan::Plan;
use crate::ranges::window_query::WindowQuery;
use crate::time::window::{Window, uncovered};

/// One window's counts.
pub(super) struct Reading {
    pub(super) window: Window,
    pub(super) table: CountTable,
    pub(super) origin: Origin,
}

/// Where counts are from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The caller's `have` table contained them.
    Given,
    /// They were stored in a checkpoint.
    Stored,
    /// They were read by this collect; they may still change if they were read too early.
    Read { provisional: bool },
}

/// The windows of a collect: those that were read, which do not overlap, and those that are left.
///
/// Each reading has its own dictionaries, so that keeping one takes the same time however many were
/// read before. Readings are added up once, at the end.
pub(super) struct Ledger {
    plan: Plan,
    /// What was known before the first call, in the order of time.
    before: Vec<Reading>,
    /// What was read since then, in the order of reading.
    read: Vec<Reading>,
    /// How many of the plan's windows have been taken from it.
    position: u64,
    /// Windows to start before the plan's next window, in reverse order.
    ahead: Vec<Window>,
    /// Windows to start after the plan's last one, in this order.
    behind: Vec<Window>,
    /// How many windows are left, counted when the first one is taken.
    left: Option<u64>,
    /// The time of the two windows that the probe reads.
    probed: Option<Window>,
}

impl Ledger {
    /// The ledger of a plan, with those windows of a given table that lie in the plan.
    pub(super) fn new(plan: Plan, have: Option<&CountTable>, query: &WindowQuery) -> Result<Self> {
        let mut ledger = Self {
            plan,
            before: Vec::new(),
            read: Vec::new(),
            position: 0,
            ahead: Vec::new(),
            behind: Vec::new(),
            left: None,
            probed: None,
        };
        if let Some(have) = have {
            ledger.put_given(have, query)?;
        }
        Ok(ledger)
    }

    fn put_given(&mut self, have: &CountTable, query: &WindowQuery) -> Result<()> {
        if have.subject != query.subject() {
            let message = format!(
                "want a table of {} by {:?} that was not filtered",
                query.query().metric(),
                query.subject().dimensions
            );
            return Err(Error::argument("have", Code::IncompatibleTables, message));
        }
        for (window, table) in have.split() {
            let outside = uncovered(window, self.plan.overlapping(window));
            if outside.is_empty() {
                self.put_before(Reading {
                    window,
                    table,
                    origin: Origin::Given,
                });
            } else if outside != [window] {
                let message = format!(
                    "{window:?} lies only partly in the range, and its counts can't be split"
                );
                return Err(Error::argument("have", Code::UnalignedWindow, message));
            }
        }
        Ok(())
    }

    /// The windows that the collect was made for.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether a window has been taken.
    pub(super) fn has_started(&self) -> bool {
        self.left.is_some()
    }

    /// How many windows are still to be started.
    pub(super) fn left(&self) -> u64 {
        self.left.unwrap_or_else(|| {
            if self.before.is_empty() {
                return self.plan.len();
            }
            let gaps = |window| self.gaps_before(window).len() as u64;
            self.plan.windows().map(gaps).sum()
        })
    }

    /// Takes the next window that is to be started.
    pub(super) fn take(&mut self) -> Option<Window> {
        let left = self.left();
        self.left = Some(left);
        let window = loop {
            if let Some(window) = self.ahead.pop() {
                break window;
            }
            let Some(window) = self.plan.window(self.position) else {
                if self.behind.is_empty() {
                    return None;
                }
                break self.behind.remove(0);
            };
            self.position += 1;
            if !self.probed.is_some_and(|probed| probed.contains(window)) {
                self.ahead = self.gaps_before(window);
                self.ahead.reverse();
            }
        };
        self.left = Some(left.saturating_sub(1));
        Some(window)
    }

    /// Takes the first two adjacent windows that may be probed and of which nothing has been read.
    pub(super) fn take_pair(
        &mut self,
        can_be_probed: impl Fn(Window) -> bool,
    ) -> Option<[Window; 2]> {
        let left = self.left();
        let is_free =
            |window: &Window| can_be_probed(*window) && self.overlapping(*window).is_empty();
        let mut last: Option<Window> = None;
        for window in self.plan.windows() {
            match last.replace(window).filter(is_free) {
                Some(before) if before.end() == window.start() && is_free(&window) => {
                    self.probed = Window::new(before.start(), window.end()).ok();
                    self.left = Some(left.saturating_sub(2));
                    return Some([before, window]);
                }
                _ => {}
            }
        }
        None
    }

    /// Puts windows back, to be started next in this order.
    pub(super) fn put_back(&mut self, windows: &[Window]) {
        self.left = self.left.map(|left| left + windows.len() as u64);
        self.ahead.extend(windows.iter().rev());
    }

    /// Puts a window back, to be started after all others.
    pub(super) fn put_behind(&mut self, window: Window) {
        self.left = self.left.map(|left| left + 1);
        self.behind.push(window);
    }

    /// Keeps the table of a window.
    pub(super) fn keep(&mut self, window: Window, table: CountTable, provisional: bool) {
        let origin = Origin::Read { provisional };
        self.read.push(Reading {
            window,
            table,
            origin,
        });
    }

    /// Adds a reading to those known before the first call, and removes those that it overlaps.
    pub(super) fn put_before(&mut self, reading: Reading) {
        let first = self
            .before
            .partition_point(|other| other.window.end() <= reading.window.start());
        let replaced = first..first + self.overlapping(reading.window).len();
        drop(self.before.drain(replaced));
        self.before.insert(first, reading);
    }

    /// The readings known before the first call that overlap a window.
    pub(super) fn overlapping(&self, window: Window) -> &[Reading] {
        let first = self
            .before
            .partition_point(|reading| reading.window.end() <= window.start());
        let after = self.before[first..]
            .iter()
            .take_while(|reading| reading.window.start() < window.end());
        &self.before[first..first + after.count()]
    }

    /// The parts of a window that were not known before the first call.
    fn gaps_before(&self, window: Window) -> Vec<Window> {
        let overlapping = self.overlapping(window).iter();
        uncovered(window, overlapping.map(|reading| reading.window))
    }

    /// What was read since the first call, in the order of reading.
    pub(super) fn read(&self) -> &[Reading] {
        &self.read
    }

    /// How many windows were read, now or before.
    pub(super) fn done(&self) -> u64 {
        (self.before.len() + self.read.len()) as u64
    }

    /// The table of each window that was read, now or before.
    pub(super) fn tables(&self) -> impl Iterator<Item = &CountTable> {
        self.all().map(|reading| &reading.table)
    }

    /// The windows that were read, now or before, sorted.
    pub(super) fn windows(&self) -> Vec<Window> {
        sorted(self.all())
    }

    /// The windows whose counts may still change, sorted.
    pub(super) fn provisional(&self) -> Vec<Window> {
        let provisional = Origin::Read { provisional: true };
        sorted(self.all().filter(|reading| reading.origin == provisional))
    }

    fn all(&self) -> impl Iterator<Item = &Reading> {
        self.before.iter().chain(&self.read)
    }
}

fn sorted<'a>(readings: impl Iterator<Item = &'a Reading>) -> Vec<Window> {
    let mut windows: Vec<Window> = readings.map(|reading| reading.window).collect();
    windows.sort_unstable();
    windows
}
