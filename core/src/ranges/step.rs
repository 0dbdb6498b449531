//! What machines with many calls ask of their host.

use crate::calls::call::Call;
use crate::time::window::Window;

/// What a worker of a [`Collect`](crate::Collect) or a [`Probe`](crate::Probe) is to do next.
#[derive(Debug)]
#[must_use = "a step is for the host to take"]
pub enum CollectStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// There is nothing to start while other calls are under way. A worker may leave: if the settling
    /// of a call brings more work, the worker that settles it finds that next.
    Idle,
    /// All that can be done is done.
    Done,
}

/// What the driver of a [`Follow`](crate::Follow) is to do next.
#[derive(Debug)]
#[must_use = "a step is for the host to take"]
pub enum FollowStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive(Drive),
    /// There is nothing to read for so long. No wait is longer than a window, so that a clock that is
    /// set right is soon seen to be; asked early, the machine gives the rest.
    Wait {
        /// Milliseconds, at least 1 and at most a day's.
        ms: u32,
    },
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
