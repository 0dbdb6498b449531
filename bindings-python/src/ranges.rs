//! The sans-IO machines of many calls: `Collect`, `Probe` and `Follow`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tallyfold::{CollectError, CollectStep, Drive, FollowStep, Progress, Settled, Spelling};

use crate::arguments::required;
use crate::call::Call;
use crate::comparison::Comparison;
use crate::detach::{BRIEF, locked};
use crate::error::{Failure, Result};
use crate::host::{Clocks, Document};
use crate::plain::{object, plain};
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
    /// About how many bytes were read since the last segment was taken.
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
    fn next<'py>(&self, py: Python<'py>, now: Clocks) -> PyResult<Bound<'py, PyAny>> {
        let step = locked(py, &self.core, BRIEF, |collect| collect.next(now.0));
        shown(py, step)
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
        task: &Bound<'_, PyAny>,
        call: &Call,
        now: Clocks,
    ) -> Result<&'static str> {
        let task = required("task", task)?;
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

    /// How many windows are to be read at the same time.
    #[getter]
    fn concurrency(&self, py: Python<'_>) -> u32 {
        locked(py, &self.core, BRIEF, |collect| collect.concurrency())
    }

    /// How far it is: numbers of windows, as `(planned, done, failed, under_way)`.
    fn progress(&self, py: Python<'_>) -> (u32, u32, u32, u32) {
        let Progress {
            planned,
            done,
            failed,
            under_way,
        } = locked(py, &self.core, BRIEF, |collect| collect.progress());
        (planned, done, failed, under_way)
    }

    /// The windows whose counts may still change, because they were read early. They count all the
    /// same.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(
            py,
            &locked(py, &self.core, BRIEF, |collect| collect.provisional()),
        )
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
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, CountTable>> {
        match locked(py, &self.core, usize::MAX, |collect| collect.finish()) {
            Ok(table) => Ok(CountTable::made(py, table)?),
            Err(ended) => Err(incomplete(py, ended)?),
        }
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
pub(crate) fn segment_name(number: &Bound<'_, PyAny>) -> Result<String> {
    Ok(tallyfold::segment_name(required("number", number)?))
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
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, locked(py, &self.0, BRIEF, tallyfold::Probe::step))
    }

    /// Takes what a call that has ended gave; one that has not comes again.
    ///
    /// Raises:
    ///     TallyfoldError: the call's final error; `out_of_order` for a task that is not under way.
    fn settle(&self, py: Python<'_>, task: &Bound<'_, PyAny>, call: &Call) -> Result<()> {
        let task = required("task", task)?;
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
        let whole = CountTable::made(py, found.whole)?;
        let difference = Comparison::made(py, found.difference, None)?;
        let fields = (found.verdict.as_str(), whole, difference);
        Ok(object(py, "Additivity", fields)?)
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Probe>"
    }
}

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
    fn next<'py>(&self, py: Python<'py>, now: Clocks) -> PyResult<Bound<'py, PyAny>> {
        match locked(py, &self.0, BRIEF, |follow| follow.next(now.0)) {
            FollowStep::Drive(drive) => driven(py, drive),
            FollowStep::Wait { ms } => object(py, "Wait", (ms,)),
            FollowStep::Done => object(py, "Done", ()),
        }
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
        task: &Bound<'_, PyAny>,
        call: &Call,
        now: Clocks,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let task = required("task", task)?;
        let revision = locked(py, &self.0, call.received(), |follow| {
            call.with(|call| follow.settle(task, call, now.0))
        })?;
        let Some(revision) = revision else {
            return Ok(None);
        };
        let window = plain(py, &revision.window)?;
        let table = CountTable::made(py, revision.table)?;
        let changes = Comparison::made(py, revision.changes, None)?;
        let fields = (window, table, changes, revision.settled);
        Ok(Some(object(py, "Revision", fields)?))
    }

    /// The windows that have been opened and are not settled.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(
            py,
            &locked(py, &self.0, BRIEF, |follow| follow.provisional()),
        )
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Follow>"
    }
}

fn shown(py: Python<'_>, step: CollectStep) -> PyResult<Bound<'_, PyAny>> {
    match step {
        CollectStep::Drive(drive) => driven(py, drive),
        CollectStep::Idle => object(py, "Idle", ()),
        CollectStep::Done => object(py, "Done", ()),
    }
}

fn driven(py: Python<'_>, Drive { task, window, call }: Drive) -> PyResult<Bound<'_, PyAny>> {
    object(py, "Drive", (task, plain(py, &window)?, Call::new(call)))
}

/// The exception of a collect's error, with what was read and what is missing.
fn incomplete(py: Python<'_>, ended: CollectError) -> PyResult<Failure> {
    let message = ended.text_in(Spelling::Python).to_string();
    let more = PyDict::new(py);
    let partial = ended.partial.map(|table| CountTable::made(py, table));
    more.set_item("partial", partial.transpose()?)?;
    more.set_item("gaps", plain(py, &ended.gaps)?)?;
    let failures = ended.failures.into_iter().map(|(window, error)| {
        let error = PyErr::from(Failure::from(error)).into_value(py);
        Ok((plain(py, &window)?, error))
    });
    more.set_item("failures", failures.collect::<PyResult<Vec<_>>>()?)?;
    Ok(Failure::with(py, &ended.error, message, &more))
}
