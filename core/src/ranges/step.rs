//! What state machines with many calls request from their host.

use crate::calls::call::Call;
use crate::error::Error;
use crate::time::window::Window;

/// What a worker of a [`Collect`](crate::Collect) or a [`Probe`](crate::Probe) must do next.
///
/// A host must handle every step, so a new kind of step breaks its build, on purpose.
#[derive(Debug)]
#[must_use = "the host must carry out the step"]
pub enum CollectStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// Nothing can be started until another call is settled. A worker may end here: if settling a
    /// call makes more work, the worker that settles it gets that work as its next step.
    Idle,
    /// There is nothing left to do.
    Done,
}

/// What the driver of a [`Follow`](crate::Follow) must do next.
///
/// A host must handle every step, so a new kind of step breaks its build, on purpose.
#[derive(Debug)]
#[must_use = "the host must carry out the step"]
pub enum FollowStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// There is nothing to read for this long. No wait is longer than a window, so that a corrected
    /// clock is noticed soon. If called earlier, the follow returns the remaining wait.
    Wait {
        /// Milliseconds, from 1 to the length of a day.
        ms: u32,
    },
    /// By the wall clock, the state that the follow began with is from the future: either it was made with a clock that
    /// was ahead, or this clock is behind. The error contains both times.
    Failed(Error),
    /// All windows up to the end are settled.
    Done,
}

/// A call for a worker to drive.
#[derive(Debug)]
pub struct Drive {
    /// The number to settle the call with.
    pub task: u32,
    /// The window whose counts the call requests.
    pub window: Window,
    /// The call.
    pub call: Call,
}
