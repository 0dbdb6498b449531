//! Tests whether counts of adjacent windows add up: compares `[a, c)` with `[a, b)` and `[b, c)`.

use super::step::{CollectStep, Drive};
use super::window_query::{WindowQuery, WindowResult, unknown_task};
use crate::calls::call::Call;
use crate::calls::machine::Machine;
use crate::code::Code;
use crate::counts::change::Deltas;
use crate::counts::comparison::{Comparison, compare};
use crate::counts::dimension::Dimension;
use crate::counts::frame::Frame;
use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::endpoint::{QueryOptions, endpoint_of};
use crate::error::{Error, Result};
use crate::time::patience::Patience;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

crate::options! {
    /// What to probe: the counts between three timestamps.
    #[derive(Clone, Debug)]
    pub struct ProbeOptions {
        /// Which counts.
        metric: Metric,
        /// The start of the first half, UTC ISO 8601.
        start: Timestamp,
        /// The timestamp at which the second half starts.
        middle: Timestamp,
        /// The end of both halves, which is not part of them.
        end: Timestamp,
        /// The dimensions to request, one to four.
        dimensions: Vec<Dimension>,
    }
}

/// The result of a [`Probe`].
#[derive(Clone, Debug, PartialEq)]
pub struct Additivity {
    /// What it means.
    pub verdict: AdditivityVerdict,
    /// The counts of the whole `[a, c)`.
    pub whole: CountTable,
    /// Compares the whole (before) with the sum of its halves (after): a positive delta counts
    /// events that both halves have counted.
    pub difference: Comparison,
}

crate::names! {
    /// Whether the counts of the halves of a window add up to the counts of the whole.
    pub enum AdditivityVerdict {
        /// They do. (Windows that include both edges would be detected only if an event happened
        /// exactly at the middle.)
        Additive = "additive",
        /// Some events were counted in both halves: the service's windows seem to include both
        /// edges.
        DoubleCounted = "double_counted",
        /// Some events were counted in neither half.
        Missing = "missing",
        /// Some groups have more events in the halves and some fewer, for example because late
        /// events arrived between the readings.
        Mixed = "mixed",
        /// There were no events, so the probe shows nothing.
        Unknown = "unknown",
    }
}

/// Finds out whether the service's windows are half-open, which its reference does not state.
///
/// It makes three calls, one after the other, which are driven like the calls of a [`Collect`](crate::Collect). Choose
/// a window so old that no late events arrive while it is read.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{AdditivityVerdict, CollectStep, Dimension, Metric, ProbeOptions, Timestamp};
/// # let mut host = Host::new()?;
/// let start = Timestamp::parse("2026-01-01T09:00:00Z")?;
/// let middle = Timestamp::parse("2026-01-01T09:05:00Z")?;
/// let end = Timestamp::parse("2026-01-01T09:10:00Z")?;
/// let dimensions = vec![Dimension::Integration];
/// let options = ProbeOptions::with_defaults(Metric::EventDelivery, start, middle, end, dimensions);
/// let mut probe = host.machine.probe_additivity(&options)?;
/// while let CollectStep::Drive(mut next) = probe.step() {
///     host.drive(&mut next.call)?;
///     probe.settle(next.task, &mut next.call)?;
/// }
/// assert_eq!(probe.finish()?.verdict, AdditivityVerdict::Additive);
/// # Ok(())
/// # }
/// ```
#[must_use = "a probe does nothing until it is driven"]
pub struct Probe {
    query: WindowQuery,
    /// The whole and its halves, in the order in which they are read.
    windows: [Window; 3],
    tables: Vec<CountTable>,
    is_under_way: bool,
    failure: Option<Error>,
}

impl Machine {
    /// Makes a probe of the counts between three timestamps, by one to four dimensions.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn probe_additivity(&self, options: &ProbeOptions) -> Result<Probe> {
        let query = QueryOptions {
            start: options.start,
            end: options.end,
            dimensions: options.dimensions.clone(),
            group_by: None,
            deadline_ms: Patience::Endless,
        };
        let query = query.check(endpoint_of(options.metric), &self.client())?;
        let whole = query.window();
        let half = |start, end| Window::new(start, end).map_err(|_| outside(whole));
        let halves = [half(whole.start(), options.middle)?, half(options.middle, whole.end())?];
        Ok(Probe::new(WindowQuery::new(self, query)?, halves, whole))
    }
}

impl Probe {
    /// How many calls there are. Their tasks are the numbers below this number.
    pub(super) const CALLS: u32 = 3;

    pub(super) fn new(query: WindowQuery, [one, other]: [Window; 2], whole: Window) -> Self {
        Self {
            query,
            windows: [whole, one, other],
            tables: Vec::new(),
            is_under_way: false,
            failure: None,
        }
    }

    /// The next call, or what to do instead.
    pub fn step(&mut self) -> CollectStep {
        if self.is_under_way {
            return CollectStep::Idle;
        }
        match self.windows.get(self.tables.len()) {
            Some(window) if self.failure.is_none() => {
                self.is_under_way = true;
                CollectStep::Drive(Drive {
                    task: self.tables.len() as u32,
                    window: *window,
                    call: self.query.call(*window),
                })
            }
            _ => CollectStep::Done,
        }
    }

    /// Takes the result of a call. If the call was closed before its end, it is made again.
    ///
    /// # Errors
    /// The call's final error, which also ends the probe; `out_of_order` for a task that
    /// is not under way.
    pub fn settle(&mut self, task: u32, call: &mut Call) -> Result<()> {
        if !self.is_under_way || task != self.tables.len() as u32 {
            return Err(unknown_task());
        }
        self.is_under_way = false;
        match self.query.outcome(call, self.windows[self.tables.len()]) {
            WindowResult::Table(table) => self.tables.push(table),
            WindowResult::None => {}
            WindowResult::Failed(error) => {
                self.failure = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Compares the three readings.
    ///
    /// # Errors
    /// The probe's final error, `sum_overflow`, and `out_of_order` before the last call has been
    /// settled.
    pub fn finish(&self) -> Result<Additivity> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let [whole, one, other] = self.tables.as_slice() else {
            let message = "the probe has not made all of its calls; drive it until it is done";
            return Err(Error::new(Code::OutOfOrder, message));
        };
        let difference = compare(whole, &one.merge(other, false)?)?;
        Ok(Additivity { verdict: verdict(&difference), whole: whole.clone(), difference })
    }

    /// Forgets the failure of the last call, so that it is made again.
    pub(super) fn forget_failure(&mut self) {
        self.failure = None;
    }

    /// The halves' tables, once they have been read.
    pub(super) fn halves(&self) -> &[CountTable] {
        self.tables.get(1..).unwrap_or_default()
    }

    /// The windows of the halves.
    pub(super) fn half_windows(&self) -> [Window; 2] {
        let [_, one, other] = self.windows;
        [one, other]
    }

    /// Whether the last call has been settled.
    pub(super) fn has_ended(&self) -> bool {
        self.tables.len() == self.windows.len()
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe")
            .field("windows", &self.windows)
            .field("read", &self.tables.len())
            .finish_non_exhaustive()
    }
}

fn verdict(difference: &Comparison) -> AdditivityVerdict {
    let each = |deltas: Deltas| [deltas.success, deltas.errors, deltas.filtered];
    let deltas = || difference.rows().flat_map(|row| each(row.delta()));
    let (more, fewer) = (deltas().any(|delta| delta > 0), deltas().any(|delta| delta < 0));
    let nothing = Default::default();
    match (more, fewer) {
        (true, true) => AdditivityVerdict::Mixed,
        (true, false) => AdditivityVerdict::DoubleCounted,
        (false, true) => AdditivityVerdict::Missing,
        _ if difference.before_totals() == nothing => AdditivityVerdict::Unknown,
        _ => AdditivityVerdict::Additive,
    }
}

fn outside(whole: Window) -> Error {
    let message = format!("want a timestamp inside {whole:?}");
    Error::argument("middle", Code::InvalidWindow, message)
}
