//! Reads a long range window by window, with any number of workers.

use std::fmt;

use super::checkpoint::{Journal, Segment};
use super::ending::{CollectError, Progress, Settled, is_too_much, with_progress};
use super::keep::Keep;
use super::ledger::{Ledger, Origin};
use super::options::CollectOptions;
use super::probing::{Probed, Probing};
use crate::calls::call::Call;
use crate::calls::delay::Delay;
use crate::calls::health::GONE;
use crate::calls::machine::Machine;
use crate::code::Code;
use crate::counts::dimension::Dimension;
use crate::counts::table::CountTable;
use crate::endpoint::{QueryOptions, endpoint_of};
use crate::error::{Error, Result};
use crate::keeper::check_past;
use crate::ranges::outage::{Next, Outages};
use crate::ranges::plan::{Plan, halves};
use crate::ranges::probe::Probe;
use crate::ranges::step::{CollectStep, Drive};
use crate::ranges::window_query::{WindowQuery, WindowResult, concerns_all, unknown_task};
use crate::spelling::{Name, words};
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::settling::{ServiceClock, ServiceTime, is_settled};
use crate::time::step::TimeStep;
use crate::time::window::{Window, join_adjacent, uncovered};

/// Reads a long range as many windows, and adds them up to one table.
///
/// It does no I/O: each worker of the host gets the next step, drives the call, and settles it. The host may use one
/// worker or many; several workers share the collect under a lock, which they hold only between calls. A window that
/// fails does not end the collect. Calls do their own retries. A window is read again after an outage, or if its call
/// was closed; a window whose response is too large or too slow is read as two halves.
///
/// When the service is down, one worker at a time tries to read a window, and the others get
/// [`CollectStep::Idle`] until the service is back: see [`CollectOptions::patience_ms`].
///
/// The collect starts no further windows after a failed authentication, a refusal (403), a
/// redirect, wrong arguments, or `retry_later`; after its deadline, an outage that outlasts its
/// patience, or too much memory; and after several failed windows in a row.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{CollectOptions, CollectStep, Dimension, Metric, Window};
/// # let mut host = Host::new()?;
/// let range = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z")?;
/// let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Integration]);
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
    memory_limit: u64,
    probing: Probing,
    ledger: Ledger,
    under_way: Vec<UnderWay>,
    /// What other processes are reading.
    assigned: Vec<(Assignment, Vec<Window>)>,
    /// How many windows other processes could not read.
    failed_elsewhere: u64,
    /// Windows whose tables need more than one worker's share of the memory. Each of them is read alone.
    large: Vec<Window>,
    /// The number of the next task; the first numbers belong to the probe's calls.
    next_task: u32,
    /// Sorted by window.
    failures: Vec<(Window, Error)>,
    failed_in_a_row: u32,
    outages: Outages,
    /// The service's clock, for counts whose response has no `Date`.
    clock: ServiceClock,
    /// Whether the last call was for a window that is known, to test whether the service is up.
    has_checked: bool,
    /// The error that ended the collect early.
    cause: Option<Error>,
    /// Whether the cause is that counts are known for a time in the future.
    is_of_future: bool,
    journal: Journal,
    deadline: Option<Delay>,
}

/// Adjacent windows that another process reads, by a collect of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The number to settle them with.
    pub task: u32,
    /// The time that they cover.
    pub range: Window,
    /// The number of windows.
    pub windows: u32,
}

/// A window whose call has been given to a worker.
struct UnderWay {
    task: u32,
    window: Window,
    asked_at: Now,
    /// Whether the window has been read before, and is read again only to test whether the service
    /// is up.
    is_check: bool,
    /// How many bytes its table may take.
    share: u64,
}

/// The least that a table under way may take, however small the limit is. Most tables are smaller.
const LEAST_SHARE: u64 = 1 << 20;

impl Machine {
    /// Begins to read the counts of a long range, window by window.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    /// `incompatible_tables` if `have` counts something else.
    pub fn collect(&self, options: CollectOptions) -> Result<Collect> {
        if options.concurrency == 0 {
            let message = "want 1 worker or more";
            return Err(Error::argument("concurrency", Code::InvalidArgument, message));
        }
        let query = QueryOptions {
            start: options.start,
            end: options.end,
            dimensions: options.dimensions,
            group_by: options.group_by,
            deadline_ms: Patience::Endless,
        };
        let query = query.check(endpoint_of(options.metric), &self.client())?;
        let mut plan = Plan::new(query.window(), options.window);
        if let Some((index, of)) = options.part {
            plan = plan.part(index, of)?;
        }
        if plan.is_empty() {
            let message = "this part is empty: there are more parts than windows";
            return Err(Error::argument("part", Code::InvalidArgument, message));
        }
        options.keep.check(options.window)?;
        let query = WindowQuery::new(self, query)?;
        Ok(Collect {
            journal: Journal::new(&query, &plan, options.keep, options.part, options.drop_old),
            ledger: Ledger::new(plan, options.keep, options.have.as_ref(), &query)?,
            query,
            memory_limit: options.memory_limit,
            concurrency: options.concurrency,
            finest: options.finest,
            settle_ms: options.settle_ms,
            probing: if options.probe { Probing::Wanted } else { Probing::Over },
            under_way: Vec::new(),
            assigned: Vec::new(),
            failed_elsewhere: 0,
            large: Vec::new(),
            next_task: Probe::CALLS,
            failures: Vec::new(),
            failed_in_a_row: 0,
            outages: Outages::new(options.patience_ms),
            clock: ServiceClock::default(),
            has_checked: false,
            cause: None,
            is_of_future: false,
            deadline: options.deadline_ms.ms().map(Delay::For),
        })
    }
}

impl Collect {
    /// Requests more dimensions than the counts have, so that several readers of a window send the same request and can
    /// share its response. Tables and checkpoints stay as they are.
    ///
    /// # Errors
    /// Of kind `config`, for dimensions that lack one of the counts' dimensions, or that the endpoint does not have.
    pub fn request_by(&mut self, dimensions: &[Dimension]) -> Result<()> {
        self.query.request_by(dimensions)
    }

    /// The windows that the collect reads.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.ledger.plan()
    }

    /// The number of workers that the caller wants.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// What to do next. `now` counts as the time at which the window is requested.
    pub fn next(&mut self, now: Now) -> CollectStep {
        self.check_known(now);
        if self.has_ended() || self.outages.has_scout() {
            return self.wait();
        }
        let Self { probing, ledger, query, .. } = self;
        let mut step = match probing.next(ledger, query, self.settle_ms, now) {
            Some(step) => step,
            None => self.begin(now),
        };
        if let CollectStep::Drive(drive) = &mut step {
            drive.call.end_with(&mut self.deadline, now);
            self.outages.prepare(drive, now, self.ledger.left());
        }
        step
    }

    /// Ends the collect before its first window if counts are known for a time in the future.
    fn check_known(&mut self, now: Now) {
        if self.cause.is_none()
            && !self.ledger.has_started()
            && let Some((known, origin)) = self.ledger.last_end()
            && let Err(error) = check_past(known, now.unix_ms)
        {
            // No window settles before it has ended.
            self.cause = Some(error.with_argument(match origin {
                Origin::Given => "have",
                Origin::Stored | Origin::Read => "checkpoint",
            }));
            self.is_of_future = true;
        }
    }

    /// Takes at most `most` adjacent windows, but at least one, for another process. There, a collect of the same query over
    /// [`range`](Assignment::range), with the same `window`, `finest`, `settle_ms` and `keep`, reads them. Pass its table to
    /// [`settle_assigned`](Self::settle_assigned). Returns `None` if no window is left, or if the collect has ended.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::{CollectOptions, CollectStep, Dimension, Metric, Window};
    /// # let mut host = Host::new()?;
    /// let range = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z")?;
    /// let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Integration]);
    /// let mut collect = host.machine.collect(options.clone())?;
    /// while let Some(assigned) = collect.assign(10, host.now) {
    ///     // In another process:
    ///     let (start, end) = (assigned.range.start(), assigned.range.end());
    ///     let mut elsewhere = host.machine.collect(options.clone().start(start).end(end))?;
    /// #   while let CollectStep::Drive(mut next) = elsewhere.next(host.now) {
    /// #       host.drive(&mut next.call)?;
    /// #       elsewhere.settle(next.task, &mut next.call, host.now)?;
    /// #   }
    ///     let table = elsewhere.finish().map_err(|ended| ended.error)?;
    ///     // Here, once the table has come back:
    ///     assert_eq!(collect.settle_assigned(assigned.task, Some(&table), false)?, []);
    /// }
    /// assert_eq!(collect.finish().map_err(|ended| ended.error)?.windows().len(), 24);
    /// # Ok(())
    /// # }
    /// ```
    pub fn assign(&mut self, most: u32, now: Now) -> Option<Assignment> {
        self.check_known(now);
        if self.has_ended() {
            return None;
        }
        let mut range = self.ledger.take()?;
        let mut windows = vec![range];
        while windows.len() < most as usize
            && let Some(next) = self.ledger.take()
        {
            match Window::new(range.start(), next.end()) {
                Ok(both) if range.end() == next.start() => range = both,
                _ => {
                    self.ledger.put_back(&[next]);
                    break;
                }
            }
            windows.push(next);
        }
        let assignment = Assignment { task: self.next_task, range, windows: windows.len() as u32 };
        self.next_task = self.next_task.wrapping_add(1);
        self.assigned.push((assignment, windows));
        Some(assignment)
    }

    /// Takes the table of an [`assign`](Self::assign)ed range, or of a part of it, and returns the windows that the table
    /// lacks. With `again`, these windows are assigned again; otherwise they count as failed.
    ///
    /// # Errors
    /// `out_of_order` for a task that is not under way, such as one that was settled before; `incompatible_tables` for a
    /// table of another query, client or time. After an error the collect is unchanged.
    pub fn settle_assigned(
        &mut self,
        task: u32,
        table: Option<&CountTable>,
        again: bool,
    ) -> Result<Vec<Window>> {
        let is_it = |(assigned, _): &(Assignment, _)| assigned.task == task;
        let position = self.assigned.iter().position(is_it);
        let position = position.ok_or_else(unknown_task)?;
        if let Some(table) = table {
            self.check_assigned(table, position)?;
            for part in &table.parts {
                self.ledger.keep(part.clone());
                self.journal.note(part.window);
            }
            self.check_memory();
        }
        let (_, windows) = self.assigned.swap_remove(position);
        let gaps = windows.iter().flat_map(|window| self.ledger.gaps_in(*window));
        let gaps: Vec<Window> = gaps.collect();
        if again {
            self.ledger.put_back(&gaps);
        } else {
            self.failed_elsewhere += gaps.len() as u64;
        }
        Ok(gaps)
    }

    /// Checks that a table has counts of assigned windows only.
    fn check_assigned(&self, table: &CountTable, position: usize) -> Result<()> {
        let refused = |message| Error::argument("table", Code::IncompatibleTables, message);
        let own = self.ledger.subject();
        if table.subject != *own {
            let message = "want a table with the counts of this query and client";
            return Err(refused(message));
        }
        own.with(&table.subject, "table")?;
        let (_, windows) = &self.assigned[position];
        for part in &table.parts {
            let first = windows.partition_point(|window| window.end() <= part.window.start());
            let mut inside = windows[first..].iter().copied();
            if !uncovered(part.window, &mut inside).is_empty() {
                return Err(refused("want a table of the assigned time only"));
            }
        }
        Ok(())
    }

    /// Begins to read the next window.
    fn begin(&mut self, now: Now) -> CollectStep {
        let is_alone = |of: &UnderWay| self.large.contains(&of.window);
        if self.under_way.iter().any(is_alone) {
            return self.wait();
        }
        let Some((window, is_check)) = self.pick() else {
            return self.wait();
        };
        let is_large = self.large.contains(&window);
        if is_large && !self.under_way.is_empty() {
            self.ledger.put_back(&[window]);
            return self.wait();
        }
        let share = self.share(is_large);
        let task = self.next_task;
        self.next_task = self.next_task.wrapping_add(1);
        self.under_way.push(UnderWay { task, window, asked_at: now, is_check, share });
        CollectStep::Drive(Drive { task, window, call: self.query.call_within(window, share) })
    }

    /// How many bytes of the memory limit a table under way may take.
    fn share(&self, is_alone: bool) -> u64 {
        let left = self.memory_limit.saturating_sub(self.ledger.bytes() as u64);
        let workers = if is_alone { 1 } else { self.concurrency };
        (left / u64::from(workers)).max(LEAST_SHARE)
    }

    /// The next window, and whether it has been read before. Once all remaining windows have failed
    /// in an outage, every second try reads a window that could be read before. If that fails too,
    /// the service is at fault, not the windows.
    fn pick(&mut self) -> Option<(Window, bool)> {
        let window = self.ledger.take()?;
        let may_check = self.outages.has_failed(window) && !self.has_checked;
        let known = may_check.then(|| self.ledger.window_known()).flatten();
        self.has_checked = known.is_some();
        if let Some(known) = known {
            self.ledger.put_back(&[window]);
            return Some((known, true));
        }
        Some((window, false))
    }

    /// Whether the collect starts no further windows.
    fn has_ended(&self) -> bool {
        self.cause.is_some() || self.failed_in_a_row >= GONE
    }

    fn wait(&self) -> CollectStep {
        if self.under_way.is_empty() && self.probing.under_way() == 0 {
            CollectStep::Done
        } else {
            CollectStep::Idle
        }
    }

    /// Takes the result of a call. If the call was closed or not driven to its end, its window is
    /// read again.
    ///
    /// A table is final if, by the wall clock, the window was requested `settle_ms` or more after
    /// its end, and this method is called `settle_ms` or more after its end, and the `Date` of the
    /// response does not contradict. Otherwise it is provisional.
    ///
    /// # Errors
    /// `out_of_order` for a task that is not under way. A call's error is returned as
    /// [`Settled::Failed`].
    pub fn settle(&mut self, task: u32, call: &mut Call, now: Now) -> Result<Settled> {
        if task < Probe::CALLS {
            return self.settle_probe(task, call, now);
        }
        let position = self.under_way.iter().position(|other| other.task == task);
        let UnderWay { window, asked_at, is_check, share, .. } =
            self.under_way.swap_remove(position.ok_or_else(unknown_task)?);
        self.outages.settle(task, call);
        Ok(match self.query.outcome(call, window) {
            WindowResult::Failed(error) if self.is_out_of_share(&error, share) && !is_check => {
                if self.large.contains(&window) {
                    self.cause.get_or_insert_with(|| {
                        too_much_memory(self.memory_limit, self.ledger.kept())
                    });
                } else {
                    self.large.push(window);
                }
                self.ledger.put_behind(window);
                Settled::TooLarge
            }
            WindowResult::Failed(error) => {
                let is_too_long = !is_check && self.is_too_long(window, call, &error);
                let halves = is_too_long.then(|| halves(window, self.finest)).flatten();
                self.take_failure(window, is_check, call, error, halves, now)
            }
            _ if is_check => Settled::Probed,
            WindowResult::Table(table) => {
                let service = self.clock.show(call.service_time(), now);
                self.keep(window, table, [asked_at, now], service)
            }
            WindowResult::None => {
                self.ledger.put_back(&[window]);
                Settled::GivenBack
            }
        })
    }

    /// Whether a shorter window may be read although a window has failed. It does not help if the token endpoint is too slow, or if
    /// the service responds to no call.
    fn is_too_long(&self, window: Window, call: &Call, error: &Error) -> bool {
        let is_at_fault = call.is_too_slow() || self.outages.has_outlasted_one(window);
        call.has_asked_api() && is_at_fault && is_too_much(error)
    }

    /// Whether a table was refused only because it shares the memory limit with others.
    fn is_out_of_share(&self, error: &Error, share: u64) -> bool {
        error.code() == Code::GroupLimit && share < self.query.query().table_bytes()
    }

    fn settle_probe(&mut self, task: u32, call: &mut Call, now: Now) -> Result<Settled> {
        let probed = self.probing.settle(task, call)?;
        self.outages.settle(task, call);
        match probed {
            None => {}
            Some(Probed::Read { tables, asked_at }) => {
                let service = self.clock.show(call.service_time(), now);
                for (window, table) in tables {
                    self.keep(window, table, [asked_at, now], service);
                }
            }
            Some(Probed::Failed { windows, mut error }) => {
                let is_too_long = self.is_too_long(windows[0], call, &error);
                let next = self.after(windows[0], call, &mut error, is_too_long, now);
                if next == Next::Again {
                    self.probing.try_again();
                    return Ok(Settled::Postponed);
                }
                self.probing = Probing::Over;
                self.ledger.put_back(&windows);
                // Each of the windows may still be read alone.
                if next == Next::End || !is_too_long {
                    self.cause = Some(error);
                }
            }
        }
        Ok(Settled::Probed)
    }

    /// Handles the failure of a call for a window, or of a call that only tested whether the service is up.
    fn take_failure(
        &mut self,
        window: Window,
        is_check: bool,
        call: &Call,
        mut error: Error,
        halves: Option<[Window; 2]>,
        now: Now,
    ) -> Settled {
        let next = self.after(window, call, &mut error, halves.is_some(), now);
        if next == Next::End || is_check && ends_all(&error) {
            self.cause.get_or_insert_with(|| error.clone());
        } else if let Some(halves) = halves {
            self.ledger.put_back(&halves);
            return Settled::Halved;
        } else if next == Next::Again {
            if !is_check {
                self.ledger.put_behind(window);
            }
            return Settled::Postponed;
        }
        if is_check {
            return Settled::Probed;
        }
        self.fail(window, error)
    }

    /// What follows a call that has failed. If a shorter window may be read instead, a late response is not an outage, unless the
    /// service is known to be down.
    fn after(
        &mut self,
        window: Window,
        call: &Call,
        error: &mut Error,
        may_be_shorter: bool,
        now: Now,
    ) -> Next {
        let is_on = self.outages.is_on();
        match call.setback() {
            Some(setback) if !may_be_shorter || setback.is_down || is_on => {
                self.outages.fail(window, setback, error, now)
            }
            _ => Next::Fail,
        }
    }

    fn keep(
        &mut self,
        window: Window,
        table: CountTable,
        times: [Now; 2],
        service: Option<ServiceTime>,
    ) -> Settled {
        let provisional = !is_settled(window, self.settle_ms, times, service);
        for part in table.marked(|_| provisional).parts {
            self.ledger.keep(part);
        }
        self.journal.note(window);
        self.check_memory();
        if !self.has_ended() {
            self.failed_in_a_row = 0;
        }
        Settled::Kept { provisional }
    }

    /// Ends the collect if what is kept takes too much memory.
    fn check_memory(&mut self) {
        if self.ledger.bytes() as u64 > self.memory_limit {
            self.cause
                .get_or_insert_with(|| too_much_memory(self.memory_limit, self.ledger.kept()));
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

    /// The next segment to store, with what was read since the previous one. Call this after each
    /// settled call, until it returns `None`. Counts from [`have`](crate::CollectOptions::have) are
    /// not stored.
    ///
    /// No segment holds a secret, a token or an address. Store it unchanged: [`Collect::load`]
    /// needs exactly the same bytes.
    pub fn unsaved(&mut self) -> Option<Segment> {
        self.journal.next_segment(&self.ledger)
    }

    /// The name of the stored segment that [`Collect::load`] wants next.
    #[must_use]
    pub fn wanted(&self) -> String {
        self.journal.wanted()
    }

    /// Loads the stored segment that is [`wanted`](Self::wanted) next. Load segments before the first [`Collect::next`],
    /// until the wanted one is not there. Their windows are not read again, except provisional ones. If `have` covers
    /// the same time, the segment's counts replace those of `have`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use std::collections::BTreeMap;
    /// # use tallyfold::{CollectOptions, CollectStep, Dimension, Metric, Window};
    /// # let mut host = Host::new()?;
    /// # let range = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z")?;
    /// # let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Integration]);
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
    /// while let Some(json) = stored.get(&collect.wanted()) {
    ///     collect.load(&collect.wanted(), json.as_bytes())?;
    /// }
    /// assert_eq!(collect.progress().done, 24);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `name` may be a place, such as a path, that ends in the segment's name. Errors then contain that place.
    ///
    /// # Errors
    /// `invalid_checkpoint`, with the JSON path and often the byte offset, for a segment
    /// that is incomplete, was changed, or belongs to another query; `invalid_argument` if `name`
    /// is not the name of the next segment; `out_of_order` once the collect has begun to read. After
    /// an error the collect is unchanged.
    pub fn load(&mut self, name: &str, json: &[u8]) -> Result<()> {
        self.journal.load(&mut self.ledger, name, json)
    }

    /// How many windows are planned, done, failed and under way.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let done = self.ledger.done();
        let failed = self.failures.len() as u64 + self.failed_elsewhere;
        let under_way = self.under_way.iter().filter(|read| !read.is_check);
        let assigned = self.assigned.iter().map(|(_, windows)| windows.len());
        let under_way =
            (under_way.count() + assigned.sum::<usize>()) as u64 + self.probing.under_way();
        // No range has that many windows: reading them would take years.
        let number = |windows: u64| u32::try_from(windows).unwrap_or(u32::MAX);
        Progress {
            planned: number(self.ledger.left() + done + failed + under_way),
            done: number(done),
            failed: number(failed),
            under_way: number(under_way),
            waiting_ms: self.outages.waiting_ms().filter(|_| !self.has_ended()),
        }
    }

    /// The windows whose counts may still change, because they were read early. The table includes
    /// them.
    #[must_use]
    pub fn provisional(&self) -> Vec<Window> {
        self.ledger.provisional()
    }

    /// The table of all windows. It covers the whole range, or the requested part.
    ///
    /// # Errors
    /// The windows that are missing and why, with a table of the others. This method may be called at
    /// any time, even if the collect is not driven any further.
    pub fn finish(&self) -> Result<CountTable, Box<CollectError>> {
        let progress = self.progress();
        let (error, partial) = match self.ledger.table() {
            Ok(Some(table)) if progress.planned == progress.done && !self.is_of_future => {
                return Ok(table);
            }
            Ok(partial) => (None, partial),
            Err(error) => (Some(error), None),
        };
        let first = || self.failures.first().map(|(_, error)| error.clone());
        let cause = error.or_else(|| self.cause.clone()).or_else(first);
        Err(Box::new(CollectError {
            error: with_progress(cause.unwrap_or_else(unfinished), &self.failures, progress),
            gaps: self.gaps(),
            partial,
            failures: self.failures.clone(),
        }))
    }

    /// The time that has not been read.
    fn gaps(&self) -> Vec<Window> {
        let read = self.ledger.windows();
        let mut gaps = self.ledger.plan().spans().flat_map(|span| {
            let first = read.partition_point(|other| other.end() <= span.start());
            let rest = read[first..].iter().copied();
            uncovered(span, &mut rest.take_while(|other| other.overlaps(span)))
        });
        join_adjacent(&mut gaps)
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

/// Whether the collect ends with this error.
fn ends_all(error: &Error) -> bool {
    concerns_all(error) || error.code() == Code::DeadlineExceeded
}

fn too_much_memory(limit: u64, keep: Keep) -> Error {
    let taken = words![
        "the counts that were read take more than ",
        Name::from("memory_limit"),
        format!(", {limit} bytes; ")
    ];
    let message = match keep {
        Keep::Windows => (taken.and("add windows up by "))
            .and(Name::from("keep"))
            .and(", such as 1h, 1d or total"),
        // The windows are added up already.
        _ => taken.and("raise it, or count by fewer dimensions"),
    };
    Error::new(Code::MemoryLimit, message)
}

fn unfinished() -> Error {
    let message = "the collect has not read all windows; drive it until it is done";
    Error::new(Code::OutOfOrder, message)
}
