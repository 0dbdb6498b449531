//! Waits for a service that is down, for a range of many windows.

use crate::calls::call::Call;
use crate::calls::patience::{Patient, Setback};
use crate::error::Error;
use crate::ranges::step::Drive;
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::window::Window;

/// A window fails for good if it fails again after it was the only window that failed in two
/// outages, or one of several in four outages: then the window is probably at fault, not the
/// service. An outage adds 1 to the score of a window, or this number if no other window failed in
/// it.
const ALONE: u32 = 2;
const MOST: u32 = 2 * ALONE;

/// Decides whether the service counts as down, and which call is tried when.
///
/// An outage begins with a call that was set back, and ends with the first response to a request
/// that was sent after the outage's last failure. During an outage, there is one try at a time.
pub(super) struct Outages {
    /// How long an outage may last, in milliseconds: 0 allows no outage, and the largest number
    /// sets no limit.
    patience_ms: u64,
    /// How many there were.
    count: u32,
    /// Whether the last of them is still under way. If not, the fields from here to `windows` mean
    /// nothing.
    is_on: bool,
    /// When it began. All times are on the monotonic clock.
    since_ms: u64,
    /// When the next try may begin.
    next_ms: u64,
    /// The wait before the next try, as it was last computed.
    waiting_ms: u64,
    /// The number of its last failure.
    failure: u64,
    /// How many tries there were.
    tries: u32,
    /// The task of the try that is under way.
    scout: Option<u32>,
    /// How many windows have failed in it.
    windows: u32,
    /// The windows that failed in outages.
    lapses: Vec<Lapse>,
}

/// A window that has failed in outages.
struct Lapse {
    window: Window,
    /// The number of the last of them.
    outage: u32,
    /// The weight of the outages that have ended.
    score: u32,
}

/// What follows a setback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The window is read again later.
    Again,
    /// The window has failed, perhaps in too many outages.
    Fail,
    /// The outage lasts longer than the patience.
    End,
}

impl Outages {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience_ms: patience.ms().unwrap_or(u64::MAX),
            count: 0,
            is_on: false,
            since_ms: 0,
            next_ms: 0,
            waiting_ms: 0,
            failure: 0,
            tries: 0,
            scout: None,
            windows: 0,
            lapses: Vec::new(),
        }
    }

    /// Whether the service counts as down.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a try is under way. There is at most one at a time.
    pub(super) fn has_scout(&self) -> bool {
        self.is_on && self.scout.is_some()
    }

    /// Milliseconds until the next try may begin; 0 without an outage.
    pub(super) fn rest_ms(&self, now: Now) -> u64 {
        let next_ms = if self.is_on { self.next_ms } else { 0 };
        next_ms.saturating_sub(now.monotonic_ms)
    }

    /// The wait before the next try, as it was when a call was last settled; `None` without an
    /// outage.
    pub(super) fn waiting_ms(&self) -> Option<u32> {
        let waiting_ms = u32::try_from(self.waiting_ms).unwrap_or(u32::MAX);
        self.is_on.then_some(waiting_ms)
    }

    /// How long the outage has lasted; 0 without one.
    fn lasted_ms(&self, now: Now) -> u64 {
        let since_ms = if self.is_on { self.since_ms } else { u64::MAX };
        now.monotonic_ms.saturating_sub(since_ms)
    }

    /// Prepares a call that is given to a worker. In an outage, the call begins when the next try
    /// is due.
    pub(super) fn prepare(&mut self, drive: &mut Drive, now: Now, calls_left: u64) {
        if self.patience_ms == 0 {
            return;
        }
        if self.is_on {
            self.scout = Some(drive.task);
            self.tries += 1;
        }
        let patient = Patient {
            longest_wait_ms: self.patience_ms.saturating_sub(self.lasted_ms(now)),
            calls_left: u32::try_from(calls_left).unwrap_or(u32::MAX),
            tries: if self.is_on { self.tries } else { 0 },
            repeats: position(&self.lapses, drive.window).is_some(),
        };
        let begin_ms = now.monotonic_ms + self.rest_ms(now);
        drive.call.be_patient(patient, begin_ms);
    }

    /// Records that the call of a task was lost.
    pub(super) fn give_back(&mut self, task: u32) {
        self.scout.take_if(|scout| *scout == task);
    }

    /// Takes a call that has ended. If it was answered, the outage may be over.
    pub(super) fn settle(&mut self, task: u32, call: &Call) {
        self.give_back(task);
        if self.is_on && call.answered_after() >= Some(self.failure) {
            self.is_on = false;
            let counts = if self.windows == 1 { ALONE } else { 1 };
            for lapse in &mut self.lapses {
                if lapse.outage == self.count {
                    lapse.score += counts;
                }
            }
        }
    }

    /// Records that a call of a window was set back. If the patience is over, adds this to the
    /// error.
    pub(super) fn fail(
        &mut self,
        window: Window,
        setback: Setback,
        error: &mut Error,
        now: Now,
    ) -> Next {
        let lasted_ms = self.lasted_ms(now);
        let left_ms = self.patience_ms.saturating_sub(lasted_ms);
        if left_ms == 0 {
            self.is_on = false;
            outlasted(error, lasted_ms);
            return Next::End;
        }
        if !self.is_on {
            self.is_on = true;
            self.count += 1;
            self.since_ms = now.monotonic_ms;
            (self.next_ms, self.failure) = (0, 0);
            (self.tries, self.windows) = (0, 0);
            self.scout = None;
        }
        let wait_ms = setback.wait_ms.min(left_ms).max(setback.floor_ms);
        self.failure = self.failure.max(setback.number);
        self.next_ms = self.next_ms.max(now.monotonic_ms.saturating_add(wait_ms));
        self.waiting_ms = self.rest_ms(now);
        let position = position(&self.lapses, window).unwrap_or_else(|| {
            self.lapses.push(Lapse { window, outage: 0, score: 0 });
            self.lapses.len() - 1
        });
        let lapse = &mut self.lapses[position];
        self.windows += u32::from(lapse.outage != self.count);
        lapse.outage = self.count;
        if lapse.score < MOST { Next::Again } else { Next::Fail }
    }

    /// Whether a window has failed in the current outage.
    pub(super) fn has_failed(&self, window: Window) -> bool {
        let lapse = position(&self.lapses, window).map(|position| self.lapses[position].outage);
        self.is_on && lapse == Some(self.count)
    }

    /// Whether a window has failed in an outage that is over: the service has answered others since.
    pub(super) fn has_outlasted_one(&self, window: Window) -> bool {
        let lapse = position(&self.lapses, window).map(|position| &self.lapses[position]);
        lapse.is_some_and(|lapse| lapse.score > 0)
    }

    /// Forgets a window that is not read again soon.
    pub(super) fn forget(&mut self, window: Window) {
        if let Some(position) = position(&self.lapses, window) {
            self.lapses.swap_remove(position);
        }
    }
}

fn position(lapses: &[Lapse], window: Window) -> Option<usize> {
    lapses.iter().position(|lapse| lapse.window == window)
}

fn outlasted(error: &mut Error, lasted_ms: u64) {
    let seconds = lasted_ms.div_ceil(1_000);
    error.add(format!(
        "; the service has been down for {seconds} s, longer than the patience for it"
    ));
}
