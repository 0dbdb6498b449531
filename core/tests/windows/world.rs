//! A client, a sandbox with recorded events, a clock, and faults for each window.

use std::collections::BTreeMap;

use tallyfold::{
    Call, Collect, CollectOptions, CollectStep, CountTable, Dimension, Drive, Frame, HostFailure,
    Machine, Metric, Now, QueryOptions, Step, TimeStep, Timestamp, Window,
};
use tallyfold_sandbox::{Outcome, Sandbox, SandboxEvent, SandboxOptions};

use crate::support::{after, at, client, client_of_one_try, drive, exchange};

/// The first timestamp of all tests.
pub(crate) fn new_year() -> Timestamp {
    instant(0)
}

/// Seconds from the new year at which the tests' windows have long been settled.
pub(crate) const LATER: u64 = 400 * 86_400;

pub(crate) const DIMENSIONS: [Dimension; 2] = [Dimension::Integration, Dimension::Reason];

/// What a request gets instead of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Status(u16),
    /// The response begins, but does not end before the timeout.
    Timeout,
    /// No response begins before the timeout.
    Silence,
    Network,
    /// 429, with a `Retry-After` of two hours.
    Later,
    /// The body ends too early.
    Cut,
}

/// A client that retries nothing, unless a test gives it another one.
pub(crate) struct World {
    pub(crate) client: Machine,
    pub(crate) sandbox: Sandbox,
    pub(crate) now: Now,
    /// How often each window was requested.
    pub(crate) asked: BTreeMap<Window, u32>,
}

impl World {
    /// A world without events.
    pub(crate) fn empty() -> Self {
        Self::of(SandboxOptions::default())
    }

    pub(crate) fn of(options_of_sandbox: SandboxOptions) -> Self {
        Self {
            client: client_of_one_try(),
            sandbox: Sandbox::new(options_of_sandbox).expect("good options"),
            now: at(LATER),
            asked: BTreeMap::new(),
        }
    }

    /// A world with random events in the first `seconds` after the new year.
    pub(crate) fn with_events(seconds: u64, events: u64) -> Self {
        let mut world = Self::empty();
        let mut random = Random(1);
        for _ in 0..events {
            let ms = random.below(seconds * 1_000);
            world.record(ms, &mut random);
        }
        world
    }

    /// Records a random event, `ms` milliseconds after the new year.
    pub(crate) fn record(&mut self, ms: u64, random: &mut Random) {
        let outcome = Outcome::ALL[random.below(3) as usize];
        let name = |kind: &str, number| format!("{kind} {number}");
        let (integration, reason) =
            (name("integration", random.below(5)), name("reason", random.below(3)));
        let values = ["Order Created", "web", &integration, &reason];
        let event = event(instant_ms(ms), outcome, values, 1 + random.below(9));
        self.sandbox.record(&event).expect("a good event");
    }

    /// Records one delivered event, `ms` milliseconds after the new year.
    pub(crate) fn record_one(&mut self, ms: u64) {
        let values = ["Order Created", "web", "email", ""];
        let event = event(instant_ms(ms), Outcome::Success, values, 1);
        self.sandbox.record(&event).expect("a good event");
    }

    /// The service's counts of a window, from one response.
    pub(crate) fn truth(&mut self, window: Window) -> CountTable {
        let call = client().event_delivery(&QueryOptions::new(window, &DIMENSIONS));
        drive(call.expect("good arguments"), &mut self.sandbox, self.now).expect("a table")
    }

    /// Drives a call to its end, with or without success.
    pub(crate) fn drive<T>(
        &mut self,
        call: &mut Call<T>,
        window: Window,
        trouble: Option<Trouble>,
    ) {
        self.drive_with(call, window, || trouble);
    }

    /// Like [`World::drive`], with trouble for each request.
    pub(crate) fn drive_with<T>(
        &mut self,
        call: &mut Call<T>,
        window: Window,
        mut trouble: impl FnMut() -> Option<Trouble>,
    ) {
        loop {
            let request = match call.step(self.now) {
                Ok(Step::Send(request)) => request,
                Ok(Step::Wait { ms }) => {
                    self.now = after(self.now, ms.into());
                    continue;
                }
                Ok(Step::Done) | Err(_) => return,
                Ok(other) => panic!("one call alone is never told {other:?}"),
            };
            let is_token = request.url().ends_with("/oauth/token");
            *self.asked.entry(window).or_default() += u32::from(!is_token);
            let trouble = if is_token { None } else { trouble() };
            let headers = [("content-type", "application/json")];
            let done = match trouble {
                None => exchange(call, &request, &mut self.sandbox, self.now),
                Some(Trouble::Status(status)) => {
                    call.head(status, &headers).and_then(|_| call.end())
                }
                Some(Trouble::Later) => {
                    call.head(429, &[("retry-after", "7200")]).and_then(|_| call.end())
                }
                Some(Trouble::Timeout) => {
                    call.head(200, &headers).and_then(|_| call.failed(HostFailure::Timeout, ""))
                }
                Some(Trouble::Silence) => call.failed(HostFailure::Timeout, ""),
                Some(Trouble::Network) => call.failed(HostFailure::Network, ""),
                Some(Trouble::Cut) => call.head(200, &headers).and_then(|_| call.end()),
            };
            // The call returns its error again when it is settled.
            drop(done);
        }
    }

    /// Drives a collect to its end with one worker.
    pub(crate) fn run(
        &mut self,
        collect: &mut Collect,
        mut trouble: impl FnMut(Window) -> Option<Trouble>,
    ) {
        while self.run_one(collect, &mut trouble) {}
    }

    /// Drives one call of a collect. Returns false if the collect has ended.
    pub(crate) fn run_one(
        &mut self,
        collect: &mut Collect,
        mut trouble: impl FnMut(Window) -> Option<Trouble>,
    ) -> bool {
        match collect.next(self.now) {
            CollectStep::Drive(Drive { task, mut call, window }) => {
                self.drive(&mut call, window, trouble(window));
                let settled = collect.settle(task, &mut call, self.now);
                settled.expect("the task is under way");
                true
            }
            CollectStep::Done => false,
            CollectStep::Idle => panic!("a worker alone is never idle"),
        }
    }

    /// The number of metrics requests.
    pub(crate) fn requests(&self) -> u32 {
        self.asked.values().sum()
    }
}

/// Random numbers by SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Events at one timestamp, with an event name, a write key, an integration and a reason.
pub(crate) fn event(
    timestamp: Timestamp,
    outcome: Outcome,
    values: [&str; 4],
    count: u64,
) -> SandboxEvent {
    let timestamp = timestamp.to_string();
    let [event_name, write_key, integration, reason] = values.map(str::to_owned);
    SandboxEvent::with_defaults(timestamp, outcome, event_name, write_key, integration)
        .reason(reason)
        .count(count)
}

pub(crate) fn step(text: &str) -> TimeStep {
    TimeStep::parse(text).expect("a good step")
}

/// The timestamp this many seconds after the new year.
pub(crate) fn instant(seconds: u64) -> Timestamp {
    instant_ms(seconds * 1_000)
}

fn instant_ms(ms: u64) -> Timestamp {
    let ms = crate::support::NEW_YEAR_MS + ms as i64;
    Timestamp::from_unix_ms(ms).expect("a year of four digits")
}

/// The window between two numbers of seconds after the new year.
pub(crate) fn window(start: u64, end: u64) -> Window {
    Window::new(instant(start), instant(end)).expect("a window")
}

/// Options for a range of this many seconds from the new year on.
pub(crate) fn collect_options(seconds: u64, step_text: &str) -> CollectOptions {
    CollectOptions::new(Metric::EventDelivery, window(0, seconds), &DIMENSIONS)
        .window(step(step_text))
}

/// Checks that a table has the same rows as one response for the same range.
pub(crate) fn assert_same_counts(table: &CountTable, truth: &CountTable) {
    let rows = |table: &CountTable| {
        let row = |row: tallyfold::Row<'_, CountTable>| {
            let values: Vec<String> = row.values().map(str::to_owned).collect();
            (values, row.counts())
        };
        table.rows().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(table), rows(truth));
    assert_eq!(table.totals(), truth.totals());
    assert_eq!(table.reported(), truth.reported());
    assert_eq!(table.coverage(), truth.coverage());
}
