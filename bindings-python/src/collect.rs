//! The sans-IO machines of long ranges: `Collect` and `Probe`, and the steps they ask for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tallyfold::Settled;

use crate::call::{Call, Done};
use crate::convert::{self, BRIEF, Clocks, Document, Given, fitting, locked};
use crate::error::Result;
use crate::table::CountTable;

/// A long range, window by window, without its HTTP: what `Client.collect` drives.
///
/// Any number of workers share it: each asks for the `next` step, drives the call of a `Drive` to
/// its end, and settles it. A window that fails does not end the others; one whose response is too
/// large or too slow comes again as two halves. Calls have their own retries.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> collect = machine.collect(
/// ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z", ["integration"],
/// ...     window="15m",
/// ... )
/// >>> drive = collect.next(tallyfold.Now.read())
/// >>> drive.window
/// Window('2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z')
/// >>> drive.call.close()
/// >>> collect.settle(drive.task, drive.call, tallyfold.Now.read())
/// 'given_back'
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Collect {
    core: Mutex<tallyfold::Collect>,
    /// About how many bytes have been read and not been stored.
    unsaved: AtomicUsize,
}

impl Collect {
    pub(crate) fn new(core: tallyfold::Collect) -> Self {
        Self {
            core: Mutex::new(core),
            unsaved: AtomicUsize::new(0),
        }
    }
}

#[pymethods]
impl Collect {
    /// What to do next: a `Drive`; `Idle` while there is nothing to start and calls are under way;
    /// `Done`. `now` is the time at which the window is asked for.
    fn next(&self, py: Python<'_>, now: Clocks) -> PyResult<CollectStep> {
        let step = locked(py, &self.core, BRIEF, |collect| collect.next(now.0));
        CollectStep::new(py, step)
    }

    /// Takes what a call that has ended gave; one that has not gives its window back, to be read
    /// again. Says what became of the window: `"kept"`, or `"provisional"` if its counts may still
    /// change; `"halved"`, `"failed"`, `"given_back"`; or `"probed"`.
    ///
    /// Raises:
    ///     ConfigError: `out_of_order` for a task that is not under way.
    fn settle(
        &self,
        py: Python<'_>,
        task: Given<u64>,
        call: &Call,
        now: Clocks,
    ) -> Result<&'static str> {
        let task = fitting("task", task)?;
        let received = call.received();
        let settled = locked(py, &self.core, BRIEF, |collect| {
            call.with(|call| collect.settle(task, call, now.0))
        })?;
        self.unsaved.fetch_add(received, Ordering::Relaxed);
        Ok(match settled {
            Settled::Kept { provisional: false } => "kept",
            Settled::Kept { provisional: true } => "provisional",
            Settled::Halved => "halved",
            Settled::Failed(_) => "failed",
            Settled::GivenBack => "given_back",
            Settled::Probed => "probed",
        })
    }

    /// How far it is: numbers of windows, as `(planned, done, failed, under_way)`.
    fn progress(&self, py: Python<'_>) -> (u64, u64, u64, u64) {
        let tallyfold::Progress {
            planned,
            done,
            failed,
            under_way,
        } = locked(py, &self.core, BRIEF, |collect| collect.progress());
        (planned, done, failed, under_way)
    }

    /// The windows whose counts may still change, because they were read early. They count all the
    /// same.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let windows = locked(py, &self.core, BRIEF, |collect| collect.provisional());
        convert::windows(py, &windows)
    }

    /// The next segment of the checkpoint to store under its name, in place of what was there: a
    /// pair of name and document. To be asked for after each settling until it is `None`.
    fn unsaved<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let bytes = self.unsaved.swap(0, Ordering::Relaxed);
        let segment = locked(py, &self.core, bytes, tallyfold::Collect::unsaved)?;
        Some((segment.name, PyBytes::new(py, segment.json.as_bytes())))
    }

    /// Takes up a stored segment; before the first step, one after the other, from
    /// `segment_name(0)` on until there is none. What they hold is not read again.
    ///
    /// Raises:
    ///     ConfigError: `invalid_checkpoint` for what is torn, was changed, or is of another query;
    ///         nothing has changed then.
    fn load(&self, py: Python<'_>, name: &str, data: Document) -> Result<()> {
        Ok(locked(py, &self.core, data.len(), |collect| {
            collect.load(name, &data)
        })?)
    }

    /// The table of all windows.
    ///
    /// Raises:
    ///     TallyfoldError: where windows are missing: what ended the collect, or the first failure,
    ///         or `out_of_order`; with `partial`, `gaps` and `failures`. It can be asked for at any
    ///         time.
    fn finish(&self, py: Python<'_>) -> Result<CountTable> {
        let table = locked(py, &self.core, usize::MAX, |collect| collect.finish())?;
        Ok(CountTable(table))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (planned, done, ..) = self.progress(py);
        format!("<Collect: {done} of {planned} windows>")
    }
}

/// The name under which the segment of that number is stored, counted from 0.
///
/// >>> tallyfold.segment_name(3)
/// 'segment-00003.json'
#[pyfunction]
pub(crate) fn segment_name(number: Given<u64>) -> Result<String> {
    Ok(tallyfold::segment_name(fitting("number", number)?))
}

/// Finds out whether the service's windows are half-open, without its HTTP: what
/// `Client.probe_additivity` drives.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> edges = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"
/// >>> probe = machine.probe_additivity("event_delivery", *edges, ["integration"])
/// >>> probe.step().window
/// Window('2026-01-01T00:00:00Z', '2026-01-01T00:10:00Z')
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Probe(Mutex<tallyfold::Probe>);

impl Probe {
    pub(crate) fn new(core: tallyfold::Probe) -> Self {
        Self(Mutex::new(core))
    }
}

#[pymethods]
impl Probe {
    /// The next of three calls as a `Drive`, `Idle` while one is under way, or `Done`.
    fn step(&self, py: Python<'_>) -> PyResult<CollectStep> {
        let step = locked(py, &self.0, BRIEF, tallyfold::Probe::step);
        CollectStep::new(py, step)
    }

    /// Takes what a call that has ended gave; one that has not comes again.
    ///
    /// Raises:
    ///     TallyfoldError: the call's final error; `out_of_order` for a task that is not under way.
    fn settle(&self, py: Python<'_>, task: Given<u64>, call: &Call) -> Result<()> {
        let task = fitting("task", task)?;
        Ok(locked(py, &self.0, BRIEF, |probe| {
            call.with(|call| probe.settle(task, call))
        })?)
    }

    /// What the three readings say, as `Additivity`.
    ///
    /// Raises:
    ///     TallyfoldError: the probe's final error; `out_of_order` before the last call has been
    ///         settled.
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let found = locked(py, &self.0, usize::MAX, |probe| probe.finish())?;
        Ok(convert::additivity(py, found)?)
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Probe>"
    }
}

/// What a `Collect` or a `Probe` asks its host to do.
#[derive(IntoPyObject)]
pub(crate) enum CollectStep {
    Drive(Drive),
    Idle(Idle),
    Done(Done),
}

impl CollectStep {
    fn new(py: Python<'_>, step: tallyfold::CollectStep) -> PyResult<Self> {
        Ok(match step {
            tallyfold::CollectStep::Drive { task, window, call } => {
                Self::Drive(Drive::new(py, task, window, call)?)
            }
            tallyfold::CollectStep::Idle => Self::Idle(Idle),
            tallyfold::CollectStep::Done => Self::Done(Done),
        })
    }
}

/// Drive `call` to its end, or close it, then settle `task`.
#[pyclass(frozen, get_all, module = "tallyfold")]
pub(crate) struct Drive {
    /// The number to settle the call with.
    task: u64,
    /// The window that the call is of.
    window: Py<PyAny>,
    /// The call.
    call: Py<Call>,
}

impl Drive {
    pub(crate) fn new(
        py: Python<'_>,
        task: u64,
        window: tallyfold::Window,
        call: tallyfold::Call,
    ) -> PyResult<Self> {
        Ok(Self {
            task,
            window: convert::window(py, window)?.unbind(),
            call: Py::new(py, Call::new(call))?,
        })
    }
}

#[pymethods]
impl Drive {
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __match_args__: (&'static str, &'static str, &'static str) = ("task", "window", "call");

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let window = self.window.bind(py).repr()?;
        Ok(format!(
            "Drive(task={}, window={window}, call=<Call>)",
            self.task
        ))
    }
}

/// There is nothing to start while other calls are under way. Ask again once one of them has been
/// settled.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Idle;

#[pymethods]
impl Idle {
    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "Idle()"
    }
}
