//! Waits for a service that is down, for a range of many windows.

use crate::calls::call::Call;
use crate::calls::patience::{Patient, Setback};
use crate::error::Error;
use crate::ranges::step::Drive;
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::window::Window;

/// A window that was alone to fail in two outages, or failed in four outages with others, fails for
/// good when it fails again: then it is probably the window and not the service. Until then each
/// outage counts as one, or as this many if it was alone.
const ALONE: u32 = 2;
const MOST: u32 = 2 * ALONE;

/// Decides whether the service counts as down, and who tries when.
///
/// An outage begins with a call that fails although it was to be retried, and ends with the first
/// answer to a request that was sent after its last failure. In between there is one try at a time.
pub(super) struct Outages {
    /// How long an outage may last: 0 for never, without end for the largest number.
    patience_ms: u64,
    current: Option<Outage>,
    /// How many there were.
    count: u32,
    /// The windows that failed in outages.
    lapses: Vec<Lapse>,
}

struct Outage {
    /// All times are those of the monotonic clock.
    since_ms: u64,
    /// When the next try may begin.
    next_ms: u64,
    /// The wait for it, when it was last computed.
    waiting_ms: u64,
    /// The number of its last failure.
    failure: u64,
    /// How many tries there were.
    tries: u32,
    /// The task of the try that is under way.
    scout: Option<u32>,
}

impl Outage {
    fn lasted_ms(&self, now: Now) -> u64 {
        now.monotonic_ms.saturating_sub(self.since_ms)
    }
}

/// A window that has failed in outages.
struct Lapse {
    window: Window,
    /// The last of them.
    outage: u32,
    /// How much those that have ended count.
    score: u32,
}

/// What follows a setback.
pub(super) enum Next {
    /// The window is read again later.
    Again,
    /// The window has failed in too many outages.
    Fail,
    /// The outage lasts longer than the patience: the error says so.
    End(Error),
}

impl Outages {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience_ms: patience.ms().unwrap_or(u64::MAX),
            current: None,
            count: 0,
            lapses: Vec::new(),
        }
    }

    /// Whether the service counts as down.
    pub(super) fn is_on(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a try is under way, beside which there is no other.
    pub(super) fn has_scout(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|outage| outage.scout.is_some())
    }

    /// Milliseconds until the next try may begin; 0 without an outage.
    pub(super) fn rest_ms(&self, now: Now) -> u64 {
        let next_ms = self.current.as_ref().map_or(0, |outage| outage.next_ms);
        next_ms.saturating_sub(now.monotonic_ms)
    }

    /// The wait before the next try, when a call was last settled.
    pub(super) fn waiting_ms(&self) -> Option<u32> {
        let outage = self.current.as_ref()?;
        Some(u32::try_from(outage.waiting_ms).unwrap_or(u32::MAX))
    }

    /// Prepares a call that is given out. In an outage it begins when the next try is due.
    pub(super) fn prepare(&mut self, drive: &mut Drive, now: Now, calls_left: u64) {
        if self.patience_ms == 0 {
            return;
        }
        let (mut left_ms, mut begin_ms, mut tries) = (self.patience_ms, 0, 0);
        if let Some(outage) = &mut self.current {
            outage.scout = Some(drive.task);
            outage.tries += 1;
            tries = outage.tries;
            left_ms = left_ms.saturating_sub(outage.lasted_ms(now));
            begin_ms = outage.next_ms;
        }
        let patient = Patient {
            longest_wait_ms: left_ms,
            calls_left: u32::try_from(calls_left).unwrap_or(u32::MAX),
            tries,
            repeats: self.lapses.iter().any(|lapse| lapse.window == drive.window),
        };
        drive.call.be_patient(patient, begin_ms);
    }

    /// Takes a call that has ended. If it was answered, the outage may be over.
    pub(super) fn settle(&mut self, task: u32, call: &Call) {
        let Some(outage) = &mut self.current else {
            return;
        };
        outage.scout.take_if(|scout| *scout == task);
        if call.answered_after() >= Some(outage.failure) {
            self.current = None;
            let count = self.count;
            let failed = |lapse: &&mut Lapse| lapse.outage == count;
            let is_one = self.lapses.iter_mut().filter(failed).count() == 1;
            for lapse in self.lapses.iter_mut().filter(failed) {
                lapse.score += if is_one { ALONE } else { 1 };
            }
        }
    }

    /// Takes a call of a window that was set back.
    pub(super) fn fail(
        &mut self,
        window: Window,
        setback: Setback,
        error: &Error,
        now: Now,
    ) -> Next {
        if self.current.is_none() {
            self.count += 1;
        }
        let outage = self.current.get_or_insert(Outage {
            since_ms: now.monotonic_ms,
            next_ms: 0,
            waiting_ms: 0,
            failure: 0,
            tries: 0,
            scout: None,
        });
        let lasted_ms = outage.lasted_ms(now);
        let left_ms = self.patience_ms.saturating_sub(lasted_ms);
        if left_ms == 0 {
            self.current = None;
            return Next::End(outlasted(error, lasted_ms));
        }
        let wait_ms = setback.wait_ms.min(left_ms).max(setback.floor_ms);
        outage.failure = outage.failure.max(setback.number);
        outage.next_ms = outage.next_ms.max(now.monotonic_ms.saturating_add(wait_ms));
        outage.waiting_ms = outage.next_ms.saturating_sub(now.monotonic_ms);
        if self.lapse(window) < MOST {
            Next::Again
        } else {
            Next::Fail
        }
    }

    /// Notes that a window has failed in the current outage; gives how much earlier ones count.
    fn lapse(&mut self, window: Window) -> u32 {
        let outage = self.count;
        match self.lapses.iter_mut().find(|lapse| lapse.window == window) {
            Some(lapse) => {
                lapse.outage = outage;
                lapse.score
            }
            None => {
                self.lapses.push(Lapse {
                    window,
                    outage,
                    score: 0,
                });
                0
            }
        }
    }

    /// Whether a window has failed in the current outage.
    pub(super) fn has_failed(&self, window: Window) -> bool {
        let failed = |lapse: &Lapse| lapse.window == window && lapse.outage == self.count;
        self.is_on() && self.lapses.iter().any(failed)
    }

    /// Forgets a window that is not read again soon.
    pub(super) fn forget(&mut self, window: Window) {
        self.lapses.retain(|lapse| lapse.window != window);
    }
}

fn outlasted(error: &Error, lasted_ms: u64) -> Error {
    let seconds = lasted_ms.div_ceil(1_000);
    error.clone().adding(format!(
        "; the service has been down for {seconds} s, longer than the patience for it"
    ))
}
