//! The state machines that make many calls: `Collect`, `Probe` and `Follow`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tallyfold::{CollectError, CollectStep, Drive, FollowStep, Progress, Settled, Spelling};

use crate::arguments::{instance, required};
use crate::call::Call;
use crate::comparison::Comparison;
use crate::detach::{BRIEF, locked};
use crate::error::{Failure, Result};
use crate::host::{Clocks, TextOrBytes};
use crate::plain::{object, plain};
use crate::table::CountTable;

/// Reads a long range window by window, without I/O; `Client.collect` drives a `Collect`.
///
/// Any number of workers share it: each gets the `next` step, drives the call of a `Drive` to its end, and settles the
/// call. A window that fails does not end the collect. A window whose response is too large or too slow is read again
/// as two halves. Calls do their own retries.
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
        Self { core: Mutex::new(core), unsaved: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl Collect {
    /// What to do next: a `Drive`; `Idle` if nothing can be started until another call is settled;
    /// or `Done`. `now` counts as the time at which the window is requested.
    fn next<'py>(&self, py: Python<'py>, now: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let now = Clocks::of("now", now)?;
        let step = locked(py, &self.core, BRIEF, |collect| collect.next(now.0));
        Ok(shown(py, step)?)
    }

    /// Reports the result of a call; if the call has not ended, its window will be read again.
    /// Returns what became of the window: `"kept"`, or `"provisional"` if its counts may still
    /// change; `"halved"`, `"failed"`, `"given_back"`; `"too_large"` if its table did not fit next to
    /// the tables of other windows, so that it will be read again, alone; `"postponed"` if the service
    /// counts as down and the window will be read again once the service is back; or `"probed"`.
    ///
    /// Raises:
    ///     ConfigError: `out_of_order` for a task that is not under way.
    fn settle(
        &self,
        py: Python<'_>,
        task: &Bound<'_, PyAny>,
        call: &Bound<'_, PyAny>,
        now: &Bound<'_, PyAny>,
    ) -> Result<&'static str> {
        let (task, call, now) =
            (required("task", task)?, driven_call(call)?, Clocks::of("now", now)?);
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
            Settled::TooLarge => "too_large",
            Settled::Postponed => "postponed",
            Settled::Probed => "probed",
        })
    }

    /// Assigns at most `most` adjacent windows to another process: `(task, start, end, windows)`. There, a collect of
    /// the same query from `start` to `end`, with the same `window`, `finest`, `settle` and `keep`, reads them.
    /// `None` if no window is left, or the collect has ended.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    fn assign(
        &self,
        py: Python<'_>,
        most: &Bound<'_, PyAny>,
        now: &Bound<'_, PyAny>,
    ) -> Result<Option<(u32, String, String, u32)>> {
        let (most, now) = (required("most", most)?, Clocks::of("now", now)?);
        let assigned = locked(py, &self.core, BRIEF, |collect| collect.assign(most, now.0));
        Ok(assigned.map(|assigned| {
            let (start, end) = (assigned.range.start(), assigned.range.end());
            (assigned.task, start.to_string(), end.to_string(), assigned.windows)
        }))
    }

    /// Adds the table of an assigned range, or of a part of it, and returns the windows that the table lacks. With
    /// `again`, these windows are assigned again; otherwise they count as failed.
    ///
    /// Raises:
    ///     ConfigError: `out_of_order` for a task that is not under way, also one that was settled before;
    ///         `incompatible_tables` for a table of another query, client or time. The collect is unchanged then.
    #[pyo3(signature = (task, table, *, again = false))]
    fn settle_assigned<'py>(
        &self,
        py: Python<'py>,
        task: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
        again: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let task = required("task", task)?;
        let wanted = "want a CountTable or None";
        let table = table.map(|table| instance::<CountTable>("table", wanted, table));
        let table = table.transpose()?.map(|table| table.get().shared());
        let bytes = table.as_ref().map_or(BRIEF, |_| LARGE);
        let missing = locked(py, &self.core, bytes, |collect| {
            collect.settle_assigned(task, table.as_deref(), again)
        })?;
        // The table is written to the checkpoint, as responses are.
        self.unsaved.fetch_add(bytes, Ordering::Relaxed);
        Ok(plain(py, &missing)?)
    }

    /// How many windows to read at the same time.
    #[getter]
    fn concurrency(&self, py: Python<'_>) -> u32 {
        locked(py, &self.core, BRIEF, |collect| collect.concurrency())
    }

    /// The numbers of windows, as `(planned, done, failed, under_way)`.
    fn progress(&self, py: Python<'_>) -> (u32, u32, u32, u32) {
        let Progress { planned, done, failed, under_way, .. } =
            locked(py, &self.core, BRIEF, |collect| collect.progress());
        (planned, done, failed, under_way)
    }

    /// While the collect waits for a service that is down: how many seconds it waits before the next
    /// try, counted from when a window was last settled. Otherwise `None`.
    #[getter]
    fn waiting(&self, py: Python<'_>) -> Option<f64> {
        let progress = locked(py, &self.core, BRIEF, |collect| collect.progress());
        seconds(progress.waiting_ms)
    }

    /// The windows whose counts may still change, because they were read early. The table includes
    /// them.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &locked(py, &self.core, BRIEF, |collect| collect.provisional()))
    }

    /// The next segment of the checkpoint, as a pair of name and document. Store the document under
    /// the name, and replace what was stored there. Call this after each settling until it returns
    /// `None`.
    fn unsaved<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let bytes = self.unsaved.swap(0, Ordering::Relaxed);
        let segment = locked(py, &self.core, bytes, tallyfold::Collect::unsaved)?;
        Some((segment.name, PyBytes::new(py, segment.json.as_bytes())))
    }

    /// The name of the stored segment to `load` next.
    fn wanted(&self, py: Python<'_>) -> String {
        locked(py, &self.core, BRIEF, |collect| collect.wanted())
    }

    /// Loads the stored segment with the name `wanted`. Load segments before the first step, until
    /// there is no segment with that name. Their windows are not read again, except provisional ones.
    /// `name` may be a path that ends in the segment's name; errors then name that path.
    ///
    /// Raises:
    ///     ConfigError: `invalid_checkpoint` for a segment that is incomplete, was changed, or
    ///         belongs to another query; the collect is unchanged then.
    fn load(&self, py: Python<'_>, name: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> Result<()> {
        let (name, data) = (required::<String>("name", name)?, TextOrBytes::of("data", data)?);
        Ok(locked(py, &self.core, data.len(), |collect| collect.load(&name, &data))?)
    }

    /// The table of all windows.
    ///
    /// Raises:
    ///     TallyfoldError: if windows are missing: the error that ended the collect, the error of the
    ///         first failed window, or `out_of_order`; with `partial`, `gaps` and `failures`. You may
    ///         call this method at any time.
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, CountTable>> {
        match locked(py, &self.core, usize::MAX, |collect| collect.finish()) {
            Ok(table) => Ok(CountTable::made(py, table)?),
            Err(ended) => Err(incomplete(py, *ended)?),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (planned, done, ..) = self.progress(py);
        format!("<Collect: {done} of {planned} windows>")
    }
}

/// The size to pass for work on a table of many windows.
const LARGE: usize = 1 << 20;

/// The call that a `Drive` came with.
fn driven_call<'a>(call: &'a Bound<'_, PyAny>) -> Result<&'a Call> {
    Ok(instance::<Call>("call", "want the Call that came with the task", call)?.get())
}

/// The name under which the segment with a number, counted from 0, is stored.
///
/// >>> tallyfold.segment_name(3)
/// 'segment-00003.json'
#[pyfunction]
pub(crate) fn segment_name(number: &Bound<'_, PyAny>) -> Result<String> {
    Ok(tallyfold::keeper::segment_name(required("number", number)?))
}

/// Tests whether the service's windows are half-open, without I/O; `Client.probe_additivity` drives a
/// `Probe`.
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

    /// Reports the result of a call. If the call has not ended, a later step returns it again.
    ///
    /// Raises:
    ///     TallyfoldError: the call's final error; `out_of_order` for a task that is not under way.
    fn settle(
        &self,
        py: Python<'_>,
        task: &Bound<'_, PyAny>,
        call: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let (task, call) = (required("task", task)?, driven_call(call)?);
        Ok(locked(py, &self.0, BRIEF, |probe| call.with(|call| probe.settle(task, call)))?)
    }

    /// Compares the three readings, as `Additivity`.
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

/// Reads windows as they close, and again while their counts may change; `Client.follow` drives a
/// `Follow`.
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
pub(crate) struct Follow {
    core: Mutex<tallyfold::Follow>,
    /// The last revision, until the next step. `recover` returns it if an interrupt has kept `settle` from returning it.
    last: Mutex<Option<Revised>>,
}

impl Follow {
    pub(crate) fn new(core: tallyfold::Follow) -> Self {
        Self { core: Mutex::new(core), last: Mutex::new(None) }
    }

    /// The last revision as a new object.
    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let last = locked(py, &self.last, BRIEF, |last| last.clone());
        last.map(|revised| revised.shown(py)).transpose()
    }
}

/// A revision whose table and changes are Python objects already.
#[derive(Clone)]
struct Revised {
    window: tallyfold::Window,
    table: Arc<Py<CountTable>>,
    changes: Arc<Py<Comparison>>,
    settled: bool,
    number: u32,
    clock_ahead_s: f64,
}

impl Revised {
    fn of(py: Python<'_>, revision: tallyfold::Revision) -> PyResult<Self> {
        Ok(Self {
            window: revision.window,
            table: Arc::new(CountTable::made(py, revision.table)?.unbind()),
            changes: Arc::new(Comparison::made(py, revision.changes, None)?.unbind()),
            settled: revision.settled,
            number: revision.number,
            clock_ahead_s: revision.clock_ahead_ms as f64 / 1000.0,
        })
    }

    /// Makes the Python object of the revision. This runs Python code, which an interrupt may end.
    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let window = plain(py, &self.window)?;
        let (table, changes) = (self.table.bind(py), self.changes.bind(py));
        let (settled, number) = (self.settled, self.number);
        let fields = (window, table, changes, settled, number, self.clock_ahead_s);
        object(py, "Revision", fields)
    }
}

#[pymethods]
impl Follow {
    /// What to do next: a `Drive`; a `Wait`, which is not longer than a window; or `Done`.
    ///
    /// Raises:
    ///     ConfigError: in the first step, if the state to resume from is later than `now`.
    fn next<'py>(&self, py: Python<'py>, now: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let now = Clocks::of("now", now)?;
        locked(py, &self.last, BRIEF, |last| *last = None);
        Ok(match locked(py, &self.core, BRIEF, |follow| follow.next(now.0)) {
            FollowStep::Drive(drive) => driven(py, drive),
            FollowStep::Wait { ms } => object(py, "Wait", (ms,)),
            FollowStep::Failed(error) => return Err(error.into()),
            FollowStep::Done => object(py, "Done", ()),
        }?)
    }

    /// Reports the result of a call, and returns a `Revision` of its window. If the call has not
    /// ended, the method returns `None`, and the window is read again at once. If the service counts
    /// as down, the method returns `None`, too. Then `waiting` is a number, and the window is read
    /// again later.
    ///
    /// Raises:
    ///     TallyfoldError: the call's final error; its window is read again later. `out_of_order`
    ///         for a task that is not under way.
    fn settle<'py>(
        &self,
        py: Python<'py>,
        task: &Bound<'_, PyAny>,
        call: &Bound<'_, PyAny>,
        now: &Bound<'_, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let (task, call, now) =
            (required("task", task)?, driven_call(call)?, Clocks::of("now", now)?);
        let revision = locked(py, &self.core, call.received(), |follow| {
            call.with(|call| follow.settle(task, call, now.0))
        })?;
        let revised = revision.map(|revision| Revised::of(py, revision));
        let revised = revised.transpose()?;
        locked(py, &self.last, BRIEF, |last| *last = revised);
        Ok(self.shown(py)?)
    }

    /// Resumes after an interrupt, such as Ctrl-C, that came between `next` and the end of `settle`. Returns the revision
    /// of the last `settle`, if `next` was not called since. All windows whose calls were not settled are read again.
    fn recover<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        locked(py, &self.core, BRIEF, |follow| follow.give_back());
        self.shown(py)
    }

    /// While the follow waits for a service that is down: how many seconds it waits before the next
    /// try, counted from when a call was last settled. Otherwise `None`.
    #[getter]
    fn waiting(&self, py: Python<'_>) -> Option<f64> {
        seconds(locked(py, &self.core, BRIEF, |follow| follow.waiting_ms()))
    }

    /// The position of the follow, as JSON: with it as `state`, a later follow of the same query resumes from the
    /// revisions that were returned so far.
    fn state(&self, py: Python<'_>) -> String {
        locked(py, &self.core, BRIEF, |follow| follow.state())
    }

    /// The windows that were read, or are being read, and are not settled.
    fn provisional<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &locked(py, &self.core, BRIEF, |follow| follow.provisional()))
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Follow>"
    }
}

fn seconds(milliseconds: Option<u32>) -> Option<f64> {
    milliseconds.map(|ms| f64::from(ms) / 1000.0)
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
