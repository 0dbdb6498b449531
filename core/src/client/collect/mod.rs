//! A long range, window by window, by any number of workers.

mod checkpoint;
mod ending;
mod options;
mod probing;
mod queue;
mod store;

use std::fmt;

pub use checkpoint::{Segment, segment_name};
pub use ending::{CollectError, Progress, Settled};
pub use options::CollectOptions;
pub(super) use options::SETTLE_MS;

use checkpoint::Journal;
use ending::is_too_much;
use probing::Probing;
use queue::Queue;
use store::{Origin, Reading, Store};

use super::Client;
use super::call::Call;
use super::probe::Probe;
use super::question::{Answer, Question, unknown_task};
use crate::endpoint::MetricsQuery;
use crate::error::{Code, Error, Kind, Result};
use crate::plan::{Plan, halves};
use crate::step::TimeStep;
use crate::table::CountTable;
use crate::time::Now;
use crate::window::{Window, join_adjacent, uncovered};

/// So many windows that fail in a row, without one that succeeds, end a collect: the service is
/// down, and the other windows would only fail too.
const FAILURES_IN_A_ROW: u32 = 8;

/// What a worker of a [`Collect`] or a [`Probe`] is to do next.
#[derive(Debug)]
#[must_use = "a step is for the host to take"]
pub enum CollectStep {
    /// Drive this call to its end, or close it, then settle the task.
    Drive {
        /// The number to settle the call with.
        task: u64,
        /// The window that the call is of.
        window: Window,
        /// The call.
        call: Call,
    },
    /// There is nothing to start while other calls are under way. A worker may leave: if the settling
    /// of a call brings more work, the worker that settles it finds that next.
    Idle,
    /// All that can be done is done.
    Done,
}

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
/// # use tallyfold::{Call, Client, CollectOptions, CollectStep, CountTable, Now, Result};
/// # fn drive(call: &mut Call) {}
/// # fn now() -> Now { unimplemented!() }
/// fn collect(client: &Client, options: CollectOptions) -> Result<CountTable> {
///     let mut collect = client.collect(options)?;
///     while let CollectStep::Drive { task, mut call, .. } = collect.next(now()) {
///         drive(&mut call);
///         collect.settle(task, &mut call, now())?;
///     }
///     collect.finish().map_err(|ended| {
///         println!("{} windows are missing", ended.gaps.len());
///         ended.error
///     })
/// }
/// ```
#[must_use = "a collect does nothing until it is driven"]
pub struct Collect {
    question: Question,
    plan: Plan,
    finest: TimeStep,
    settle_ms: u64,
    probing: Probing,
    queue: Queue,
    store: Store,
    under_way: Vec<UnderWay>,
    /// The number of the next task; the first ones are the probe's.
    next_task: u64,
    /// In the order of windows.
    failures: Vec<(Window, Error)>,
    failed_in_a_row: u32,
    /// What ended the collect early.
    cause: Option<Error>,
    journal: Journal,
}

/// A window whose call has been given.
struct UnderWay {
    task: u64,
    window: Window,
    asked_at: Now,
}

impl Client {
    /// Counts of a long range, read window by window.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then. `incompatible_tables`
    /// if `have` counts something else, and `unaligned_window` if one of its windows reaches out
    /// of what is collected.
    pub fn collect(&self, options: CollectOptions) -> Result<Collect> {
        let query = MetricsQuery::new(
            options.metric,
            &options.start,
            &options.end,
            &options.dimensions,
            options.group_by.as_deref(),
            self.0.config.metrics,
        )?;
        let mut plan = Plan::new(query.window(), options.window);
        if let Some((index, of)) = options.part {
            plan = plan.part(index, of)?;
        }
        if plan.is_empty() {
            let message = "this part has no window: there are more parts than windows";
            return Err(Error::argument("part", Code::InvalidArgument, message));
        }
        let question = Question::new(self, query)?;
        let store = Store::of(options.have.as_ref(), &question, &plan)?;
        Ok(Collect {
            journal: Journal::new(&question, &plan, options.part),
            question,
            plan,
            finest: options.finest,
            settle_ms: options.settle_ms,
            probing: if options.probe {
                Probing::Wanted
            } else {
                Probing::Over
            },
            queue: Queue::new(plan),
            store,
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
        &self.plan
    }

    /// What to do next. `now` is the time at which the window is asked for.
    pub fn next(&mut self, now: Now) -> CollectStep {
        if self.has_ended() {
            return self.wait();
        }
        if let Some(step) = self.next_of_probe(now) {
            return step;
        }
        let Some(window) = self.queue.take(&self.store) else {
            return self.wait();
        };
        let task = self.next_task;
        self.next_task += 1;
        self.under_way.push(UnderWay {
            task,
            window,
            asked_at: now,
        });
        CollectStep::Drive {
            task,
            window,
            call: self.question.call(window),
        }
    }

    /// Whether no further window is started.
    fn has_ended(&self) -> bool {
        self.cause.is_some() || self.failed_in_a_row >= FAILURES_IN_A_ROW
    }

    fn wait(&self) -> CollectStep {
        let probes = matches!(self.probing, Probing::UnderWay { .. });
        if self.under_way.is_empty() && !probes {
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
    pub fn settle(&mut self, task: u64, call: &mut Call, now: Now) -> Result<Settled> {
        if task < Probe::CALLS {
            return self.settle_probe(task, call, now);
        }
        let position = self.under_way.iter().position(|other| other.task == task);
        let UnderWay {
            window, asked_at, ..
        } = self
            .under_way
            .swap_remove(position.ok_or_else(unknown_task)?);
        Ok(match self.question.answer(call, window) {
            Answer::Table(table) => self.keep(window, table, [asked_at, now]),
            // A token endpoint that is too slow says nothing of the window.
            Answer::Failed(error) if call.has_asked_api() && is_too_much(&error) => {
                self.halve(window, error)
            }
            Answer::Failed(error) => self.fail(window, error),
            Answer::None => {
                self.queue.put_first([window]);
                Settled::GivenBack
            }
        })
    }

    fn keep(&mut self, window: Window, table: CountTable, times: [Now; 2]) -> Settled {
        let provisional = !is_settled(window, self.settle_ms, times);
        self.store.push(Reading {
            window,
            table,
            origin: Origin::Read { provisional },
        });
        if !self.has_ended() {
            self.failed_in_a_row = 0;
        }
        Settled::Kept { provisional }
    }

    fn halve(&mut self, window: Window, error: Error) -> Settled {
        match halves(window, self.finest) {
            Some(halves) => {
                self.queue.put_first(halves);
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

    /// How far the collect is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let probed = match self.probing {
            Probing::UnderWay { .. } => 2,
            _ => 0,
        };
        let done = self.store.len() as u64;
        let failed = self.failures.len() as u64;
        let under_way = self.under_way.len() as u64 + probed;
        Progress {
            planned: self.queue.left(&self.store) + done + failed + under_way,
            done,
            failed,
            under_way,
        }
    }

    /// The windows whose counts may still change, because they were read early. They count all the
    /// same.
    #[must_use]
    pub fn provisional(&self) -> Vec<Window> {
        self.store.provisional()
    }

    /// The table of all windows, whose coverage is the range, or the part of it.
    ///
    /// # Errors
    /// What is missing, why, and the table of the rest. It can be asked for at any time, also of
    /// a collect that was given up.
    pub fn finish(&self) -> Result<CountTable, CollectError> {
        let Progress { planned, done, .. } = self.progress();
        let partial = match self.store.len() {
            0 => Ok(None),
            _ => CountTable::merge_all(self.store.tables()).map(Some),
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
        let read = self.store.windows();
        let gaps = self.plan.windows().flat_map(|window| {
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
            .field("plan", &self.plan)
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}

/// Whether a window was old enough at both times. A wall clock may be set back between the two, and
/// the earlier one is the safe one to believe.
pub(super) fn is_settled(window: Window, settle_ms: u64, times: [Now; 2]) -> bool {
    let settled_ms = window.end().unix_ms().saturating_add_unsigned(settle_ms);
    times.into_iter().all(|time| time.unix_ms >= settled_ms)
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
