//! What machines with many calls ask their host to do.

use crate::calls::call::Call;
use crate::error::Error;
use crate::time::window::Window;

/// What a worker of a [`Collect`](crate::Collect) or a [`Probe`](crate::Probe) is to do next.
///
/// A host must take every step, so a new one breaks its build, on purpose.
#[derive(Debug)]
#[must_use = "a step is for the host to take"]
pub enum CollectStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// Nothing can be started until another call is settled. A worker may end here: if settling a
    /// call makes more work, the worker that settles it gets that work as its next step.
    Idle,
    /// There is nothing left to do.
    Done,
}

/// What the driver of a [`Follow`](crate::Follow) is to do next.
///
/// A host must take every step, so a new one breaks its build, on purpose.
#[derive(Debug)]
#[must_use = "a step is for the host to take"]
pub enum FollowStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// There is nothing to read for this long. No wait is longer than a window, so that a corrected
    /// clock is noticed soon. If called earlier, the machine gives the remaining wait.
    Wait {
        /// Milliseconds, from 1 to a day's.
        ms: u32,
    },
    /// The state that the follow began with is of the future by the wall clock: either it was made with a clock that
    /// was ahead, or this one is behind. The error says so.
    Failed(Error),
    /// All windows up to the end are settled.
    Done,
}

/// A call for a worker to drive.
#[derive(Debug)]
pub struct Drive {
    /// The number to settle the call with.
    pub task: u32,
    /// The window that the call is of.
    pub window: Window,
    /// The call.
    pub call: Call,
}
