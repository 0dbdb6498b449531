//! Reads windows as they close, and again until their settle time is over.

use std::fmt;

use super::outage::{Next, Outages};
use super::step::{Drive, FollowStep};
use super::window_query::{WindowQuery, WindowResult, concerns_all, unknown_task};
use crate::calls::call::Call;
use crate::calls::machine::Machine;
use crate::code::Code;
use crate::counts::comparison::{Comparison, compare};
use crate::counts::dimension::Dimension;
use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::endpoint::endpoint_of;
use crate::endpoint::metrics::MetricsQuery;
use crate::error::{Error, Result};
use crate::keeper::check_past;
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::settling::{PRECISION_MS, SETTLE_MS, ServiceClock, ServiceTime, is_settled};
use crate::time::step::TimeStep;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

/// How long a driver of several calls waits while one of them tests whether the service is back.
const SCOUTED_MS: u64 = 1_000;

/// The pause between calls while an error concerns all of them, such as refused credentials.
const REFUSED_MS: u64 = 60_000;

crate::options! {
    /// What to follow.
    ///
    /// ```
    /// # use tallyfold::{Dimension, FollowOptions, Metric, TimeStep, Timestamp};
    /// # fn main() -> tallyfold::Result<()> {
    /// let step = TimeStep::parse("5m")?;
    /// let start = Timestamp::parse("2026-01-01T00:00:00Z")?;
    /// let options = FollowOptions::new(Metric::EventDelivery, start, &[Dimension::Integration], step)
    ///     .delay_ms(30_000);
    /// assert_eq!(options.settle_ms, 3_600_000);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Debug)]
    pub struct FollowOptions {
        /// Which counts.
        metric: Metric,
        /// The start of the first window, UTC ISO 8601.
        ///
        /// It may be in the past or in the future. If it is not at an edge of a window, the first window is
        /// shorter.
        start: Timestamp,
        /// The dimensions to request, one to four.
        dimensions: Vec<Dimension>,
        /// The length of the windows; they start at multiples of it, counted from midnight UTC.
        window: TimeStep,
        /// The end of the last window.
        ///
        /// By default, the follow has no end.
        end: Option<Timestamp> = None,
        /// The dimensions to keep, in this order; an empty list gives one grand total.
        ///
        /// By default, all are kept.
        group_by: Option<Vec<Dimension>> = None,
        /// How long after its end a window is first read.
        delay_ms: u64 [Milliseconds] = 0,
        /// How long after a reading, successful or failed, a window is read again.
        ///
        /// By default, the length of `window`.
        reread_ms: Option<u64> [Milliseconds] = None,
        /// For how long after a window's end its counts may still change.
        ///
        /// A window is read again until then.
        settle_ms: u64 [Milliseconds] = SETTLE_MS,
        /// Settles a window early if its counts have not changed for at least the length of a window.
        ///
        /// This needs fewer requests, but loses the events that arrive after the last reading.
        settle_when_unchanged: bool = false,
        /// The state of an earlier follow of the same query.
        ///
        /// This one resumes there, and `start` has no effect.
        state: Option<String> = None,
        /// How long to wait for a service that is down; after that, the reading fails.
        ///
        /// While the service is down, one reading at a time is tried again, with increasing waits of up to a minute,
        /// and all others wait. With 0, a reading fails once its own retries are used up. If a window fails repeatedly
        /// while others can be read, its reading fails, too.
        patience_ms: Patience = Patience::Endless,
    }
}

impl FollowOptions {
    /// Options with the defaults for everything else.
    #[must_use]
    pub fn new(
        metric: Metric,
        start: Timestamp,
        dimensions: &[Dimension],
        window: TimeStep,
    ) -> Self {
        Self::with_defaults(metric, start, dimensions.to_owned(), window)
    }
}

/// The newest counts of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The window.
    pub window: Window,
    /// Its newest counts.
    pub table: CountTable,
    /// How they differ from the window's last revision. The first revision is compared with no
    /// counts.
    pub changes: Comparison,
    /// Whether this is the window's last revision: the window is not read again.
    pub settled: bool,
    /// How many revisions of the window were returned before this one, including those of earlier follows
    /// whose state this follow has resumed: 0 for the first. No two revisions of a window have the same
    /// number.
    pub number: u32,
    /// By how many milliseconds the wall clock was ahead of the service's when the window was read: 0 if it was not, or if
    /// no response had a `Date`.
    pub clock_ahead_ms: u64,
}

/// Reads windows as they close, and again as long as their counts may change.
///
/// Each reading returns a [`Revision`] with signed changes, so that a running sum of all changes is
/// always the sum of the newest counts of every window. A window is settled, and forgotten, once it
/// was read `settle_ms` or more after its end; the last revision of a window has `settled` set. The
/// follow misses events that arrive after that, so choose `settle_ms` by how late events may arrive.
/// With `settle_when_unchanged`, a window is also settled once all its readings over at least the
/// window's length were equal, including the totals that the service reports.
///
/// The wall clock decides when a window closes. If it is set back, the follow waits; if it is set forward, or the
/// computer slept, the follow catches up in the order of windows. If it is ahead of the `Date` of responses, the follow
/// uses the service's clock. If the service sends no `Date`, the follow can't know that the wall clock is wrong. A response
/// with an old `Date` delays the next request by at most `reread_ms` or the length of a window, whichever is less.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{Dimension, FollowOptions, FollowStep, Metric, TimeStep, Timestamp};
/// # let mut host = Host::new()?;
/// # let step = TimeStep::parse("15m")?;
/// # let metric = Metric::EventDelivery;
/// let start = Timestamp::parse("2026-01-02T12:00:00Z")?;
/// let options = FollowOptions::new(metric, start, &[Dimension::Integration], step)
///     .end(Timestamp::parse("2026-01-02T13:00:00Z")?);
/// let mut follow = host.machine.follow(&options)?;
/// let mut sum = 0;
/// loop {
///     match follow.next(host.now) {
///         FollowStep::Drive(mut next) => {
///             host.drive(&mut next.call)?;
///             if let Some(revision) = follow.settle(next.task, &mut next.call, host.now)? {
///                 sum += revision.changes.total_delta().success;
///             }
///         }
///         FollowStep::Wait { ms } => host.wait(ms.into()),
///         FollowStep::Failed(error) => return Err(error),
///         FollowStep::Done => break,
///     }
/// }
/// assert!(sum > 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "a follow does nothing until it is driven"]
pub struct Follow {
    pub(super) query: WindowQuery,
    pub(super) step: TimeStep,
    /// Where the next window starts; `None` once the last window has been opened.
    pub(super) next_start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    delay_ms: u64,
    pub(super) reread_ms: u64,
    settle_ms: u64,
    settle_when_unchanged: bool,
    /// The windows that are not settled, in the order of time.
    pub(super) open: Vec<Open>,
    outages: Outages,
    next_task: u32,
    /// The service's clock, as the last response showed it.
    service: Option<ServiceTime>,
    /// The service's clock, for counts whose response has no `Date`.
    clock: ServiceClock,
    /// The window that was read last before its end by the service's clock.
    too_early: Option<Window>,
    /// Where the next window started in the state from which the follow was resumed. With an earlier `end`, no window is opened.
    pub(super) resumed_at: Option<Timestamp>,
    /// When a call last failed with an error that all other calls would have, too, or when a call was last tried after that, and
    /// the wait in milliseconds that the service has requested; `None` once a call has succeeded.
    refused: Option<(Now, u64)>,
    /// The latest time in the state that the follow began with, until a step has checked that it is past.
    pub(super) latest: Option<Timestamp>,
}

/// A window that is not settled.
pub(super) struct Open {
    pub(super) window: Window,
    /// The counts of the last reading.
    pub(super) table: Option<CountTable>,
    /// When the first of this process's readings with these counts was taken, on the monotonic clock.
    same_since_ms: Option<u64>,
    /// How long the counts were the same, from the first of the readings to the last.
    pub(super) same_for_ms: u64,
    /// How much of that was before this process.
    pub(super) same_before_ms: u64,
    /// When it was read last, by the wall clock.
    pub(super) read_ms: i64,
    /// How many revisions of it were returned.
    pub(super) revisions: u32,
    /// Whether a reading came in the last second of its settle time. The next one follows that second.
    was_close: bool,
    /// The attempts that have failed since the last reading, after the settle time.
    failing: Option<Failing>,
    state: State,
}

impl Open {
    pub(super) fn new(window: Window) -> Self {
        Self {
            window,
            table: None,
            same_since_ms: None,
            same_for_ms: 0,
            same_before_ms: 0,
            read_ms: 0,
            revisions: 0,
            was_close: false,
            failing: None,
            state: State::Due,
        }
    }

    /// Records when an earlier process read the window. Only the wall clock shows how long ago that was.
    pub(super) fn rest_since(&mut self, read_ms: i64, pause_ms: u64) {
        self.read_ms = read_ms;
        let since = Now { monotonic_ms: u64::MAX, unix_ms: read_ms };
        self.state = State::Rests { since, pause_ms };
    }

    /// Whether its last attempt was at or after a time by the wall clock, and it rests.
    fn was_tried_since(&self, unix_ms: i64) -> bool {
        matches!(self.state, State::Rests { since, .. } if since.unix_ms >= unix_ms)
    }

    /// Compares a reading with the previous one. The times of its request and its response are on the monotonic clock.
    fn compare(&mut self, table: &CountTable, [asked_ms, now_ms]: [u64; 2]) {
        if self.table.as_ref() != Some(table) {
            self.table = Some(table.clone());
            self.same_since_ms = None;
            self.same_before_ms = 0;
        }
        let since_ms = *self.same_since_ms.get_or_insert(now_ms);
        self.same_for_ms = self.same_before_ms + asked_ms.saturating_sub(since_ms);
    }
}

/// The failed attempts to read a window whose settle time is over.
#[derive(Clone, Copy)]
struct Failing {
    /// Whether other windows were read between the last two attempts. Then the window is at fault, not the service.
    is_alone: bool,
    /// Whether another window was read since the last attempt.
    others_were_read: bool,
    /// The pause after the last attempt.
    pause_ms: u64,
}

impl Failing {
    /// Adds an attempt. The pause doubles each time. Otherwise, if all windows fail, the requests would grow without limit.
    fn again(before: Option<Self>, reread_ms: u64) -> Self {
        Self {
            is_alone: before.is_some_and(|before| before.others_were_read),
            others_were_read: false,
            pause_ms: before.map_or(reread_ms, |before| before.pause_ms.saturating_mul(2)),
        }
    }
}

#[derive(Clone, Copy)]
enum State {
    /// It must be read at once.
    Due,
    UnderWay {
        task: u32,
        asked_at: Now,
    },
    /// It was read at that time, or the attempt failed then, and must be read again after a pause.
    Rests {
        since: Now,
        pause_ms: u64,
    },
}

impl State {
    fn task(self) -> Option<u32> {
        match self {
            Self::UnderWay { task, .. } => Some(task),
            _ => None,
        }
    }
}

impl Machine {
    /// Begins to read windows as they close, and again while their counts may change.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn follow(&self, options: &FollowOptions) -> Result<Follow> {
        let query = MetricsQuery::new(
            endpoint_of(options.metric),
            first_window(options.start, options.end, options.window)?,
            &options.dimensions,
            options.group_by.as_deref(),
            &self.client(),
        )?;
        let reread_ms = options.reread_ms.unwrap_or(options.window.ms());
        if reread_ms == 0 {
            let message = "want 1 millisecond or more";
            return Err(Error::argument("reread_ms", Code::InvalidArgument, message));
        }
        let mut follow = Follow {
            query: WindowQuery::new(self, query)?,
            step: options.window,
            next_start: Some(options.start),
            end: options.end,
            delay_ms: options.delay_ms,
            reread_ms,
            settle_ms: options.settle_ms,
            settle_when_unchanged: options.settle_when_unchanged,
            open: Vec::new(),
            outages: Outages::new(options.patience_ms),
            next_task: 0,
            service: None,
            clock: ServiceClock::default(),
            too_early: None,
            resumed_at: None,
            latest: None,
            refused: None,
        };
        if let Some(state) = &options.state {
            follow.take_up(state).map_err(|error| error.with_argument("state"))?;
        }
        Ok(follow)
    }
}

/// The window from a timestamp to the next edge, or to the end.
fn first_window(start: Timestamp, end: Option<Timestamp>, step: TimeStep) -> Result<Window> {
    let edge = step.after(start);
    match (edge, end) {
        (Some(edge), Some(end)) => {
            Window::new(start, end)?;
            Window::new(start, edge.min(end))
        }
        (Some(edge), None) => Window::new(start, edge),
        // This fails only in the last hours of the year 9999.
        (None, end) => Window::new(start, end.unwrap_or(start)),
    }
}

impl Follow {
    /// Requests more dimensions than the counts have, so that several readers of a window send the same request and can
    /// share its response. Tables and states stay as they are.
    ///
    /// # Errors
    /// Of kind `config`, for dimensions that lack one of the counts' dimensions, or that the endpoint does not have.
    pub fn request_by(&mut self, dimensions: &[Dimension]) -> Result<()> {
        self.query.request_by(dimensions)
    }

    /// What to do next.
    pub fn next(&mut self, now: Now) -> FollowStep {
        if let Some(latest) = self.latest {
            if let Err(error) = check_past(latest, now.unix_ms) {
                return FollowStep::Failed(error.with_argument("state"));
            }
            self.latest = None;
        }
        if self.outages.has_scout() {
            return self.wait_for(SCOUTED_MS);
        }
        let refused_ms = self.refused.map_or(0, |(since, wait_ms)| {
            let pause_ms = self.reread_ms.min(REFUSED_MS).max(wait_ms);
            pause_ms.saturating_sub(now.since(since))
        });
        let rest_ms = self.outages.rest_ms(now).max(refused_ms);
        if rest_ms > 0 {
            return self.wait_for(rest_ms);
        }
        let opening = self.opening();
        let opening = opening.filter(|window| self.closed_ms(*window, now) == 0);
        // In an outage, a window that has not failed yet is more likely to succeed. If the service is too slow for all readings, a
        // window whose first reading is due already waits for at most one more reading of each other window.
        let is_later = |open: &Open| {
            let has_waited = |window| open.was_tried_since(self.ripe_ms(window));
            self.outages.has_failed(open.window) || opening.is_some_and(has_waited)
        };
        let mut later = None;
        for (position, open) in self.open.iter().enumerate() {
            if self.rest_ms(open, now) == Some(0) {
                if !is_later(open) {
                    return self.read(position, now);
                }
                later = later.or(Some(position));
            }
        }
        let Some(window) = opening else {
            return match later {
                Some(position) => self.read(position, now),
                None => self.wait(now),
            };
        };
        self.next_start = Some(window.end()).filter(|end| Some(*end) != self.end);
        self.open.push(Open::new(window));
        self.read(self.open.len() - 1, now)
    }

    /// The window that is opened next.
    fn opening(&self) -> Option<Window> {
        first_window(self.next_start?, self.end, self.step).ok()
    }

    /// Milliseconds until a window is opened. The service's clock is known from the last response, and the monotonic clock
    /// may have stopped since. So a window is opened by the wall clock, unless its reading has shown that it had not ended.
    fn closed_ms(&self, window: Window, now: Now) -> u64 {
        if self.too_early == Some(window) {
            self.unripe_ms(window, now)
        } else {
            self.unripe_by(window, now)
        }
    }

    /// Milliseconds until a window has been closed for `delay_ms`, by the wall clock and the service's. One `Date` may be
    /// wrong, so the service's clock holds a window back only for an interval. The next response shows it again.
    fn unripe_ms(&self, window: Window, now: Now) -> u64 {
        let unripe_ms = self.unripe_by(window, now);
        let Some(service) = self.service else {
            return unripe_ms;
        };
        let interval_ms = self.reread_ms.min(self.step.ms());
        let held_ms = self.unripe_by(window, service.holds_back(now));
        unripe_ms.max(held_ms.min(interval_ms.saturating_sub(service.age_ms(now))))
    }

    fn unripe_by(&self, window: Window, now: Now) -> u64 {
        u64::try_from(self.ripe_ms(window).saturating_sub(now.unix_ms)).unwrap_or(0)
    }

    /// When a window has been closed for `delay_ms`.
    fn ripe_ms(&self, window: Window) -> i64 {
        let end_ms = window.end().unix_ms();
        end_ms.saturating_add_unsigned(self.delay_ms)
    }

    /// Milliseconds until an open window must be read; `None` while it is being read.
    fn rest_ms(&self, open: &Open, now: Now) -> Option<u64> {
        let rest_ms = match open.state {
            State::UnderWay { .. } => return None,
            State::Due => 0,
            State::Rests { since, pause_ms } => pause_ms.saturating_sub(now.since(since)),
        };
        // Its delay had passed before, but the clock may have been set back since.
        Some(rest_ms.max(self.unripe_ms(open.window, now)))
    }

    fn read(&mut self, position: usize, now: Now) -> FollowStep {
        // After a refusal, one call at a time tests whether the next calls would succeed.
        self.refused = self.refused.map(|_| (now, 0));
        let (task, open) = (self.next_task, &mut self.open[position]);
        self.next_task = self.next_task.wrapping_add(1);
        open.state = State::UnderWay { task, asked_at: now };
        let window = open.window;
        let call = self.query.call(window);
        let mut drive = Drive { task, window, call };
        self.outages.prepare(&mut drive, now, 0);
        FollowStep::Drive(drive)
    }

    fn wait(&self, now: Now) -> FollowStep {
        let opening = self.opening();
        if self.open.is_empty() && opening.is_none() {
            return FollowStep::Done;
        }
        let rests = self.open.iter().filter_map(|open| self.rest_ms(open, now));
        let opens = opening.map(|window| self.closed_ms(window, now));
        self.wait_for(rests.chain(opens).min().unwrap_or(self.reread_ms))
    }

    fn wait_for(&self, ms: u64) -> FollowStep {
        FollowStep::Wait { ms: ms.clamp(1, self.step.ms()) as u32 }
    }

    /// Takes the result of a call and returns a revision of its window. If the call was closed or not
    /// driven to its end, it returns `None`, and the window is read again at once. It also returns
    /// `None`, and the window is read again later, if by the `Date` of the response it had not ended,
    /// or if the service counts as down: then [`Follow::waiting_ms`] returns how long the follow waits.
    ///
    /// # Errors
    /// The call's final error. Its window is read again after `reread_ms`. If its settle time is over, the pause doubles with
    /// each failed attempt, until the service has returned counts again. Other windows are not affected, unless all of them
    /// would fail with the same error, such as refused credentials: then the follow reads one window a minute, or one every
    /// `reread_ms` if that is shorter, until a reading succeeds. The first of them waits for as long as the service has
    /// requested. `out_of_order` for a task that is not under way.
    pub fn settle(&mut self, task: u32, call: &mut Call, now: Now) -> Result<Option<Revision>> {
        let is_it = |open: &Open| open.state.task() == Some(task);
        let position = self.open.iter().position(is_it).ok_or_else(unknown_task)?;
        let is_last = position + 1 == self.open.len();
        let open = &mut self.open[position];
        self.outages.settle(task, call);
        let service = call.service_time();
        self.service = service.or(self.service);
        let has_ended = |window: Window| {
            service.is_none_or(|service| service.may_have_come_to(window.end().unix_ms()))
        };
        match self.query.outcome(call, open.window) {
            WindowResult::Table(table) if has_ended(open.window) => {
                self.has_succeeded();
                let service = self.clock.show(service, now);
                self.revise(position, table, service, now).map(Some)
            }
            WindowResult::Table(_) if is_last && open.table.is_none() => {
                self.too_early = Some(open.window);
                self.next_start = Some(open.window.start());
                self.open.pop();
                Ok(None)
            }
            WindowResult::Table(_) | WindowResult::None => {
                open.state = State::Due;
                Ok(None)
            }
            WindowResult::Failed(mut error) => {
                if let Some(setback) = call.setback()
                    && self.outages.fail(open.window, setback, &mut error, now) == Next::Again
                {
                    open.state = State::Due;
                    return Ok(None);
                }
                self.outages.forget(open.window);
                let mut pause_ms = self.reread_ms;
                let settled_ms =
                    open.window.end().unix_ms().saturating_add_unsigned(self.settle_ms);
                if concerns_all(&error) {
                    let wait_ms = error.retry_after_s().unwrap_or(0).saturating_mul(1_000);
                    self.refused = Some((now, wait_ms));
                } else if now.unix_ms >= settled_ms {
                    let failing = Failing::again(open.failing, self.reread_ms);
                    open.failing = Some(failing);
                    pause_ms = failing.pause_ms;
                }
                open.state = State::Rests { since: now, pause_ms };
                Err(error)
            }
        }
    }

    /// Records that the service has returned counts. Windows that failed while it did not are read again soon.
    fn has_succeeded(&mut self) {
        self.refused = None;
        for open in &mut self.open {
            let Some(failing) = &mut open.failing else {
                continue;
            };
            failing.others_were_read = true;
            if let State::Rests { pause_ms, .. } = &mut open.state
                && !failing.is_alone
            {
                *pause_ms = self.reread_ms.min(*pause_ms);
            }
        }
    }

    /// Gives back all windows whose calls were not settled, so that they are read again at once. This is for a driver that
    /// was interrupted, such as by Ctrl-C, and has lost its calls.
    pub fn give_back(&mut self) {
        for open in &mut self.open {
            if let Some(task) = open.state.task() {
                open.state = State::Due;
                self.outages.give_back(task);
            }
        }
    }

    /// While the follow waits for a service that is down: how many milliseconds it waits before the
    /// next try, counted from when a call was last settled. Otherwise it is `None`.
    #[must_use]
    pub fn waiting_ms(&self) -> Option<u32> {
        self.outages.waiting_ms()
    }

    fn revise(
        &mut self,
        position: usize,
        table: CountTable,
        service: Option<ServiceTime>,
        now: Now,
    ) -> Result<Revision> {
        let open = &mut self.open[position];
        let window = open.window;
        let asked_at = match open.state {
            State::UnderWay { asked_at, .. } => asked_at,
            _ => now,
        };
        open.state = State::Rests { since: now, pause_ms: self.reread_ms };
        open.failing = None;
        // Comparisons of readings ignore their age, so all readings have the same mark.
        let table = table.marked(|_| true);
        let nothing = CountTable::empty(self.query.subject(), window);
        let changes = compare(open.table.as_ref().unwrap_or(&nothing), &table)?;
        open.read_ms = service.map_or(now, |service| service.holds_back(now)).unix_ms;
        let clock_ahead_ms = now.unix_ms.abs_diff(open.read_ms);
        let number = open.revisions;
        open.revisions = number.saturating_add(1);
        open.compare(&table, [asked_at.monotonic_ms, now.monotonic_ms]);
        // Late events may come between two readings, so readings close to each other prove nothing.
        let stays_the_same = self.settle_when_unchanged && open.same_for_ms >= window.length_ms();
        let times = [asked_at, now];
        let settled = stays_the_same || is_settled(window, self.settle_ms, times, service);
        // One more reading at most comes early, even if the service's clock stands still.
        let latest = service.map(ServiceTime::latest);
        if !open.was_close && is_settled(window, self.settle_ms, times, latest) {
            open.was_close = true;
            // Its settle time may be over by now, and surely is after a second.
            let pause_ms = self.reread_ms.min(PRECISION_MS);
            open.state = State::Rests { since: now, pause_ms };
        }
        if settled {
            self.outages.forget(window);
            self.open.remove(position);
        }
        Ok(Revision {
            window,
            table: table.marked(|_| !settled),
            changes,
            settled,
            number,
            clock_ahead_ms,
        })
    }

    /// The windows whose reading has begun and that are not settled.
    #[must_use]
    pub fn provisional(&self) -> Vec<Window> {
        self.open.iter().map(|open| open.window).collect()
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("next_start", &self.next_start)
            .field("end", &self.end)
            .field("provisional", &self.provisional())
            .finish_non_exhaustive()
    }
}
