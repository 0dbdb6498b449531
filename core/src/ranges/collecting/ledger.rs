//! Which windows of a collect have been read, now or earlier, with their counts, and which are
//! still to be started.

use std::ops::Range;

use super::keep::Keep;
use crate::code::Code;
use crate::counts::part::{PACKED_TOGETHER, Part, PartRows, pack};
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::error::{Error, Result};
use crate::ranges::plan::Plan;
use crate::ranges::window_query::WindowQuery;
use crate::time::timestamp::Timestamp;
use crate::time::window::{Window, uncovered};

/// The counts of one window, or of several adjacent windows that were added up.
pub(super) struct Reading {
    pub(super) part: Part,
    pub(super) origin: Origin,
    /// How many windows it counts as.
    windows: u64,
}

/// Where counts are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The caller's `have` table contained them.
    Given,
    /// They were stored in a checkpoint.
    Stored,
    /// They were read by this collect.
    Read,
}

impl Reading {
    pub(super) fn window(&self) -> Window {
        self.part.window
    }
}

/// The windows of a collect: those that were read, which do not overlap, and those that are left.
///
/// Readings are added up once, at the end, unless the caller keeps only the sums of windows ([`Keep`]).
pub(super) struct Ledger {
    plan: Plan,
    subject: Subject,
    keep: Keep,
    /// What is known, in the order of time.
    known: Vec<Reading>,
    /// How many of the known readings are not packed.
    loose: usize,
    /// About how many bytes their rows take.
    bytes: usize,
    /// How many windows are known.
    done: u64,
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
    /// The ledger of a plan, with the windows of a given table that lie in the plan and are settled.
    pub(super) fn new(
        plan: Plan,
        keep: Keep,
        have: Option<&CountTable>,
        query: &WindowQuery,
    ) -> Result<Self> {
        let mut ledger = Self {
            plan,
            subject: query.subject(),
            keep,
            known: Vec::new(),
            loose: 0,
            bytes: 0,
            done: 0,
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
        if have.subject != self.subject {
            let message = format!(
                "want a table of {} by {:?} that was not filtered",
                query.query().metric(),
                self.subject.dimensions
            );
            return Err(Error::argument("have", Code::IncompatibleTables, message));
        }
        self.subject = self.subject.with(&have.subject, "have")?;
        for part in &have.parts {
            if self.is_usable(part) {
                self.put(part.clone(), Origin::Given);
            }
        }
        Ok(())
    }

    /// Whether counts from elsewhere can be used: all of their time is in windows of the plan, and they will not
    /// change.
    pub(super) fn is_usable(&self, part: &Part) -> bool {
        !part.provisional && self.is_inside(part.window)
    }

    /// Whether all of a window is in windows of the plan.
    pub(super) fn is_inside(&self, window: Window) -> bool {
        uncovered(window, &mut self.plan.overlapping(window)).is_empty()
    }

    /// The windows that the collect was made for.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What its tables count.
    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What is kept.
    pub(super) fn kept(&self) -> Keep {
        self.keep
    }

    /// The time whose windows are added up with this one.
    pub(super) fn around(&self, window: Window) -> Option<Window> {
        self.keep.around(window, self.plan.range())
    }

    /// About how many bytes the known readings take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a window has been taken.
    pub(super) fn has_started(&self) -> bool {
        self.left.is_some()
    }

    /// How many windows are still to be started.
    pub(super) fn left(&self) -> u64 {
        self.left.unwrap_or_else(|| {
            if self.known.is_empty() {
                return self.plan.len();
            }
            let gaps = |window| self.gaps_in(window).len() as u64;
            self.plan.windows().map(gaps).sum()
        })
    }

    /// Takes the next window that must be started.
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
                self.ahead = self.gaps_in(window);
                self.ahead.reverse();
            }
        };
        self.left = Some(left.saturating_sub(1));
        Some(window)
    }

    /// Takes the first two adjacent windows that may be probed and haven't been read at all.
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

    /// Adds the counts of a window that was read now. If only sums are kept, they are added to the counts of the
    /// window's neighbours.
    pub(super) fn keep(&mut self, part: Part) {
        let window = part.window;
        self.put(part, Origin::Read);
        if let Some(around) = self.around(window) {
            let place = self.place_of(window);
            self.join(place, around);
            if let Some(before) = place.checked_sub(1) {
                self.join(before, around);
            }
        }
    }

    /// Adds counts, and removes the known counts that they overlap.
    pub(super) fn put(&mut self, part: Part, origin: Origin) {
        let first = self.place_of(part.window);
        let overlapped = first..first + self.overlapping(part.window).len();
        let windows = match origin {
            // Another process may have added windows up.
            Origin::Stored | Origin::Read => self.plan.overlapping(part.window).count() as u64,
            Origin::Given => 1,
        };
        let reading = Reading { part, origin, windows };
        self.replace(overlapped, reading);
        if self.loose >= 2 * PACKED_TOGETHER {
            self.pack();
        }
    }

    /// Adds up two readings of the same kept step, if they are adjacent and settled, and both must be stored.
    fn join(&mut self, first: usize, around: Window) {
        let Some([one, other]) = self.known.get(first..first + 2) else {
            return;
        };
        let both = [one, other];
        if both.iter().any(|of| of.origin == Origin::Given || !around.contains(of.window())) {
            return;
        }
        let Some(part) = one.part.joined(&other.part, self.subject.dimensions.len()) else {
            return;
        };
        let joined = Reading { part, origin: Origin::Read, windows: one.windows + other.windows };
        self.replace(first..first + 2, joined);
    }

    fn replace(&mut self, places: Range<usize>, reading: Reading) {
        self.loose += usize::from(!reading.part.rows.is_packed());
        self.bytes += reading.part.rows.bytes();
        self.done += reading.windows;
        for removed in self.known.splice(places, [reading]) {
            self.loose -= usize::from(!removed.part.rows.is_packed());
            self.bytes = self.bytes.saturating_sub(removed.part.rows.bytes());
            self.done -= removed.windows;
        }
    }

    fn pack(&mut self) {
        let parts = self.known.iter_mut().map(|reading| &mut reading.part);
        // If their sum is refused, they stay as they are, and the sum of all readings will be refused, too.
        let _ = pack(parts, self.subject.dimensions.len());
        let rows = || self.known.iter().map(|reading| &reading.part.rows);
        self.loose = rows().filter(|rows| !rows.is_packed()).count();
        self.bytes = rows().map(PartRows::bytes).sum();
    }

    /// The place of the first reading that does not end before a window.
    fn place_of(&self, window: Window) -> usize {
        self.known.partition_point(|reading| reading.window().end() <= window.start())
    }

    /// The known readings that overlap a window.
    pub(super) fn overlapping(&self, window: Window) -> &[Reading] {
        let first = self.place_of(window);
        let after = self.known[first..]
            .iter()
            .take_while(|reading| reading.window().start() < window.end());
        &self.known[first..first + after.count()]
    }

    /// The counts of a window.
    pub(super) fn part(&self, window: Window) -> Option<&Part> {
        let found = self.overlapping(window).first()?;
        (found.window() == window).then_some(&found.part)
    }

    /// The parts of a window that are not known.
    pub(super) fn gaps_in(&self, window: Window) -> Vec<Window> {
        let overlapping = self.overlapping(window).iter();
        uncovered(window, &mut overlapping.map(Reading::window))
    }

    /// How many windows are known.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// The last known window that can be requested: a window of the plan, or a part of one.
    pub(super) fn window_known(&self) -> Option<Window> {
        let known = self.known.last()?.window();
        let mut own = self.plan.overlapping(known).rev();
        own.find(|own| known.contains(*own)).or(Some(known))
    }

    /// The end of the last window that is known, and where its counts are from.
    pub(super) fn last_end(&self) -> Option<(Timestamp, Origin)> {
        let last = self.known.last();
        last.map(|reading| (reading.window().end(), reading.origin))
    }

    /// The windows that are known, sorted.
    pub(super) fn windows(&self) -> Vec<Window> {
        self.known.iter().map(Reading::window).collect()
    }

    /// The windows whose counts may still change, sorted.
    pub(super) fn provisional(&self) -> Vec<Window> {
        let provisional = self.known.iter().filter(|reading| reading.part.provisional);
        provisional.map(Reading::window).collect()
    }

    /// The table of everything that is known; `None` if nothing is known.
    pub(super) fn table(&self) -> Result<Option<CountTable>> {
        let width = self.subject.dimensions.len();
        let mut parts: Vec<Part> = Vec::with_capacity(self.known.len());
        for reading in &self.known {
            let part = &reading.part;
            // The counts that the caller gave have not been added up yet.
            let around = self.around(part.window);
            let before = parts.last_mut().filter(|before| {
                around.is_some_and(|around| {
                    around.contains(before.window) && around.contains(part.window)
                })
            });
            match before.and_then(|before| Some((before.joined(part, width)?, before))) {
                Some((joined, before)) => *before = joined,
                None => parts.push(part.clone()),
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        CountTable::of_parts(self.subject.clone(), parts).map(Some)
    }
}
