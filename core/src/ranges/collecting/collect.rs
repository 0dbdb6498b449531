//! A long range, window by window, by any number of workers.

use std::fmt;

use super::checkpoint::{Journal, Segment};
use super::ending::{CollectError, Progress, Settled, is_too_much};
use super::ledger::Ledger;
use super::options::CollectOptions;
use super::probing::{Probed, Probing};
use crate::calls::call::Call;
use crate::calls::machine::Machine;
use crate::code::{Code, Kind};
use crate::counts::table::CountTable;
use crate::endpoint::query::QueryOptions;
use crate::error::{Error, Result};
use crate::ranges::plan::{Plan, halves};
use crate::ranges::probe::Probe;
use crate::ranges::settling::is_settled;
use crate::ranges::step::{CollectStep, Drive};
use crate::ranges::window_query::{Outcome, WindowQuery, unknown_task};
use crate::time::now::Now;
use crate::time::step::TimeStep;
use crate::time::window::{Window, join_adjacent, uncovered};

/// So many windows that fail in a row, without one that succeeds, end a collect: the service is
/// down, and the other windows would only fail too.
const FAILURES_IN_A_ROW: u32 = 8;

/// Reads a long range as many windows, and adds them up to one table.
///
/// It does no I/O and runs nothing by itself: each worker of the host asks for the next step, drives
/// the call, and settles it. One worker or many, that is the host's choice; many share the collect
/// under a lock, which they hold only between calls. A window that fails does not end the collect,
/// and its calls have their own retries; only a window whose response is too large or too slow is
/// tried again, as two halves.
///
/// A failed authentication, a refusal (403), a redirect, wrong arguments, or a service that says to
/// come back much later (`retry_later`) end it at once, and so do several windows that fail in a
/// row.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{CollectOptions, CollectStep, Metric};
/// # let mut host = Host::new()?;
/// let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z");
/// let options = CollectOptions::new(Metric::EventDelivery, start, end, &["integration"]);
/// let mut collect = host.machine.collect(options)?;
/// while let CollectStep::Drive(mut next) = collect.next(host.now) {
///     host.drive(&mut next.call)?;
///     collect.settle(next.task, &mut next.call, host.now)?;
/// }
/// match collect.finish() {
///     Ok(table) => assert_eq!(table.windows().len(), 24),
///     Err(ended) => println!("{} windows are missing: {}", ended.gaps.len(), ended.error),
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a collect does nothing until it is driven"]
pub struct Collect {
    query: WindowQuery,
    concurrency: u32,
    finest: TimeStep,
    settle_ms: u64,
    probing: Probing,
    ledger: Ledger,
    under_way: Vec<UnderWay>,
    /// The number of the next task; the first ones are the probe's.
    next_task: u32,
    /// In the order of windows.
    failures: Vec<(Window, Error)>,
    failed_in_a_row: u32,
    /// What ended the collect early.
    cause: Option<Error>,
    journal: Journal,
}

/// A window whose call has been given.
struct UnderWay {
    task: u32,
    window: Window,
    asked_at: Now,
}

impl Machine {
    /// Counts of a long range, read window by window.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then. `incompatible_tables`
    /// if `have` counts something else, and `unaligned_window` if one of its windows reaches out
    /// of what is collected.
    pub fn collect(&self, options: CollectOptions) -> Result<Collect> {
        if options.concurrency == 0 {
            let message = "want a number of workers, 1 or more";
            return Err(Error::argument(
                "concurrency",
                Code::InvalidArgument,
                message,
            ));
        }
        let query = QueryOptions {
            start: options.start,
            end: options.end,
            dimensions: options.dimensions,
            group_by: options.group_by,
        };
        let query = query.check(options.metric, self.reading())?;
        let mut plan = Plan::new(query.window(), options.window);
        if let Some((index, of)) = options.part {
            plan = plan.part(index, of)?;
        }
        if plan.is_empty() {
            let message = "this part has no window: there are more parts than windows";
            return Err(Error::argument("part", Code::InvalidArgument, message));
        }
        let query = WindowQuery::new(self, query)?;
        Ok(Collect {
            journal: Journal::new(&query, &plan, options.part),
            ledger: Ledger::new(plan, options.have.as_ref(), &query)?,
            query,
            concurrency: options.concurrency,
            finest: options.finest,
            settle_ms: options.settle_ms,
            probing: if options.probe {
                Probing::Wanted
            } else {
                Probing::Over
            },
            under_way: Vec::new(),
            next_task: Probe::CALLS,
            failures: Vec::new(),
            failed_in_a_row: 0,
            cause: None,
        })
    }
}

impl Collect {
    /// The windows that the collect was made for.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.ledger.plan()
    }

    /// How many workers the caller wants.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// What to do next. `now` is the time at which the window is asked for.
    pub fn next(&mut self, now: Now) -> CollectStep {
        if self.has_ended() {
            return self.wait();
        }
        let Self {
            probing,
            ledger,
            query,
            ..
        } = self;
        if let Some(step) = probing.next(ledger, query, self.settle_ms, now) {
            return step;
        }
        let Some(window) = self.ledger.take() else {
            return self.wait();
        };
        let task = self.next_task;
        self.next_task = self.next_task.wrapping_add(1);
        self.under_way.push(UnderWay {
            task,
            window,
            asked_at: now,
        });
        CollectStep::Drive(Drive {
            task,
            window,
            call: self.query.call(window),
        })
    }

    /// Whether no further window is started.
    fn has_ended(&self) -> bool {
        self.cause.is_some() || self.failed_in_a_row >= FAILURES_IN_A_ROW
    }

    fn wait(&self) -> CollectStep {
        if self.under_way.is_empty() && self.probing.under_way() == 0 {
            CollectStep::Done
        } else {
            CollectStep::Idle
        }
    }

    /// Takes what a call that has ended gave. A call that was closed, or was not driven to its end,
    /// gives its window back to be read again.
    ///
    /// A table counts as final if the window was asked for, and is settled, `settle_ms` after its
    /// end or later by the wall clock; otherwise it counts as provisional.
    ///
    /// # Errors
    /// `out_of_order` for a task that is not under way. The errors of calls are [`Settled::Failed`].
    pub fn settle(&mut self, task: u32, call: &mut Call, now: Now) -> Result<Settled> {
        if task < Probe::CALLS {
            return self.settle_probe(task, call, now);
        }
        let position = self.under_way.iter().position(|other| other.task == task);
        let UnderWay {
            window, asked_at, ..
        } = self
            .under_way
            .swap_remove(position.ok_or_else(unknown_task)?);
        Ok(match self.query.outcome(call, window) {
            Outcome::Table(table) => self.keep(window, table, [asked_at, now]),
            // A token endpoint that is too slow says nothing of the window.
            Outcome::Failed(error) if call.has_asked_api() && is_too_much(&error) => {
                self.halve(window, error)
            }
            Outcome::Failed(error) => self.fail(window, error),
            Outcome::None => {
                self.ledger.put_back([window]);
                Settled::GivenBack
            }
        })
    }

    fn settle_probe(&mut self, task: u32, call: &mut Call, now: Now) -> Result<Settled> {
        match self.probing.settle(task, call)? {
            None => {}
            Some(Probed::Read { tables, asked_at }) => {
                for (window, table) in tables {
                    self.keep(window, table, [asked_at, now]);
                }
            }
            Some(Probed::Failed { windows, error }) => {
                self.ledger.put_back(windows);
                self.cause = Some(error);
            }
        }
        Ok(Settled::Probed)
    }

    fn keep(&mut self, window: Window, table: CountTable, times: [Now; 2]) -> Settled {
        let provisional = !is_settled(window, self.settle_ms, times);
        self.ledger.keep(window, table, provisional);
        if !self.has_ended() {
            self.failed_in_a_row = 0;
        }
        Settled::Kept { provisional }
    }

    fn halve(&mut self, window: Window, error: Error) -> Settled {
        match halves(window, self.finest) {
            Some(halves) => {
                self.ledger.put_back(halves);
                Settled::Halved
            }
            None => self.fail(window, error),
        }
    }

    fn fail(&mut self, window: Window, error: Error) -> Settled {
        self.failed_in_a_row += 1;
        if ends_all(&error) {
            self.cause.get_or_insert_with(|| error.clone());
        }
        let after = self.failures.partition_point(|(other, _)| *other < window);
        self.failures.insert(after, (window, error.clone()));
        Settled::Failed(error)
    }

    /// The next segment to store, if there is one: with what was read since the last one was given.
    /// To be asked for after each settling until there is none. What
    /// [`have`](crate::CollectOptions::have) had is not stored.
    ///
    /// No segment holds a secret, a token or an address. [`Collect::load`] wants it as it was
    /// written, byte for byte.
    pub fn unsaved(&mut self) -> Option<Segment> {
        self.journal.next_segment(&self.ledger)
    }

    /// Takes up a stored segment. They are to be loaded before the first [`Collect::next`], one
    /// after the other, from [`segment_name`] of 0 on until there is none. What they hold is not read
    /// again, but for the windows that are provisional. Where `have` has the same time, the
    /// segment's counts take its place.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use std::collections::BTreeMap;
    /// # use tallyfold::{CollectOptions, CollectStep, Metric, segment_name};
    /// # let mut host = Host::new()?;
    /// # let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z");
    /// # let options = CollectOptions::new(Metric::EventDelivery, start, end, &["integration"]);
    /// # let mut first = host.machine.collect(options.clone())?;
    /// let mut stored = BTreeMap::new();
    /// # while let CollectStep::Drive(mut next) = first.next(host.now) {
    /// #     host.drive(&mut next.call)?;
    /// #     first.settle(next.task, &mut next.call, host.now)?;
    /// while let Some(segment) = first.unsaved() {
    ///     stored.insert(segment.name, segment.json);
    /// }
    /// # }
    /// // Later, in another process:
    /// let mut collect = host.machine.collect(options)?;
    /// for name in (0..).map(segment_name) {
    ///     let Some(json) = stored.get(&name) else { break };
    ///     collect.load(&name, json.as_bytes())?;
    /// }
    /// assert_eq!(collect.progress().done, 24);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `invalid_checkpoint`, with the JSON path and often the byte offset, for what is torn, was
    /// changed, or is of another query; `invalid_argument` for another name than the next one's;
    /// `out_of_order` once a window has been given. Nothing has changed then.
    pub fn load(&mut self, name: &str, json: &[u8]) -> Result<()> {
        self.journal.load(&mut self.ledger, name, json)
    }

    /// How far the collect is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let done = self.ledger.done();
        let failed = self.failures.len() as u64;
        let under_way = self.under_way.len() as u64 + self.probing.under_way();
        // A range has fewer windows than that: it would take years to read them.
        let number = |windows: u64| u32::try_from(windows).unwrap_or(u32::MAX);
        Progress {
            planned: number(self.ledger.left() + done + failed + under_way),
            done: number(done),
            failed: number(failed),
            under_way: number(under_way),
        }
    }

    /// The windows whose counts may still change, because they were read early. They count all the
    /// same.
    #[must_use]
    pub fn provisional(&self) -> Vec<Window> {
        self.ledger.provisional()
    }

    /// The table of all windows, whose coverage is the range, or the part of it.
    ///
    /// # Errors
    /// What is missing, why, and the table of the rest. It can be asked for at any time, also of
    /// a collect that was given up.
    pub fn finish(&self) -> Result<CountTable, CollectError> {
        let Progress { planned, done, .. } = self.progress();
        let partial = match self.ledger.done() {
            0 => Ok(None),
            _ => CountTable::merge_all(self.ledger.tables()).map(Some),
        };
        let (error, partial) = match partial {
            Ok(Some(table)) if planned == done => return Ok(table),
            Ok(partial) => (None, partial),
            Err(error) => (Some(error), None),
        };
        let first = || self.failures.first().map(|(_, error)| error.clone());
        let cause = error.or_else(|| self.cause.clone()).or_else(first);
        Err(CollectError {
            error: cause.unwrap_or_else(unfinished),
            gaps: self.gaps(),
            partial,
            failures: self.failures.clone(),
        })
    }

    /// The time that has not been read.
    fn gaps(&self) -> Vec<Window> {
        let read = self.ledger.windows();
        let gaps = self.ledger.plan().windows().flat_map(|window| {
            let first = read.partition_point(|other| other.end() <= window.start());
            uncovered(
                window,
                read[first..]
                    .iter()
                    .copied()
                    .take_while(|other| other.overlaps(window)),
            )
        });
        join_adjacent(gaps)
    }
}

impl fmt::Debug for Collect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collect")
            .field("plan", self.ledger.plan())
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}

/// Whether the calls of all other windows would end with that error too, or are not welcome.
fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), Kind::Auth | Kind::Config)
        || matches!(
            error.code(),
            Code::Forbidden | Code::Redirected | Code::RetryLater
        )
}

fn unfinished() -> Error {
    let message = "the collect has windows left; drive it until it is done";
    Error::new(Code::OutOfOrder, message)
}
