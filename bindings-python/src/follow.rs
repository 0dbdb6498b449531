//! `Follow`: windows as they close, without the HTTP.

use std::sync::Mutex;

use pyo3::prelude::*;

use crate::call::{Call, Done, Wait};
use crate::collect::Drive;
use crate::convert::{self, BRIEF, Clocks, Given, fitting, locked};
use crate::error::Result;

/// Windows as they close, and again while their counts may change: what `Client.follow` drives.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> follow = machine.follow(
/// ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"], window="5m"
/// ... )
/// >>> follow.next(tallyfold.Now(monotonic_ms=0, unix_ms=1767225600000))
/// Wait(ms=300000)
/// >>> follow.next(tallyfold.Now(monotonic_ms=300000, unix_ms=1767225900000)).window
/// Window('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z')
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Follow(Mutex<tallyfold::Follow>);

impl Follow {
    pub(crate) fn new(core: tallyfold::Follow) -> Self {
        Self(Mutex::new(core))
    }
}

#[pymethods]
impl Follow {
    /// What to do next: a `Drive`; a `Wait`, a window's length at most; or `Done`.
    fn next(&self, py: Python<'_>, now: Clocks) -> PyResult<FollowStep> {
        let step = locked(py, &self.0, BRIEF, |follow| follow.next(now.0));
        FollowStep::new(py, step)
    }

    /// Takes what a call that has ended gave: a `Revision` of its window; `None` for one that has
    /// not ended, whose window is to be read at once.
    ///
    /// Raises:
    ///     TallyfoldError: the call's final error; its window is read again later. `out_of_order`
    ///         for a task that is not under way.
    fn settle<'py>(
        &self,
        py: Python<'py>,
        task: Given<u64>,
        call: &Call,
        now: Clocks,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let task = fitting("task", task)?;
        let revision = locked(py, &self.0, call.received(), |follow| {
            call.with(|call| follow.settle(task, call, now.0))
        })?;
        let revision = revision.map(|revision| convert::revision(py, revision));
        Ok(revision.transpose()?)
    }

    /// The windows that have been opened and are not settled.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let windows = locked(py, &self.0, BRIEF, |follow| follow.provisional());
        convert::windows(py, &windows)
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Follow>"
    }
}

/// What a `Follow` asks its host to do.
#[derive(IntoPyObject)]
pub(crate) enum FollowStep {
    Drive(Drive),
    Wait(Wait),
    Done(Done),
}

impl FollowStep {
    fn new(py: Python<'_>, step: tallyfold::FollowStep) -> PyResult<Self> {
        Ok(match step {
            tallyfold::FollowStep::Drive { task, window, call } => {
                Self::Drive(Drive::new(py, task, window, call)?)
            }
            tallyfold::FollowStep::Wait { ms } => Self::Wait(Wait::new(ms)),
            tallyfold::FollowStep::Done => Self::Done(Done),
        })
    }
}
