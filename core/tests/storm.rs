//! Many clients against a service that can't keep up, in virtual time: how much do retries
//! add to its load? `STORM_CLIENTS` is the number of clients, and the capacity of the service grows with it.
//!
//! The budget of a client starts with ten retries, and earns 0.09 for each call. So in the worst
//! case, where everything fails, `n` calls are `1.09 n + 10` requests, and one for a token: from
//! 1,100 calls on, that is at most 1.1 for each. Here each client makes 1,200.
//!
//! The same holds for collects that wait for the service: each reads 1,200 windows, and a window
//! that is put back and read again counts as one call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

use crate::support::{after, at, options};
use tallyfold::{
    AuditLogsOptions, Call, Collect, CollectOptions, CollectStep, Dimension, Drive, HostFailure,
    Json, Machine, Metric, Patience, Request, Result, Step, Window,
};

/// The bound holds for each client, so `make test` runs only a few of them.
#[expect(clippy::disallowed_methods, reason = "a setting of the test")]
static CLIENTS: LazyLock<usize> = LazyLock::new(|| {
    let set = std::env::var("STORM_CLIENTS").ok();
    set.map_or(100, |text| text.parse().expect("a number"))
});
const CALLS_OF_CLIENT: usize = 1_200;
/// How many calls of a client run at the same time. Each is followed by another one.
const WORKERS: usize = 2;
const CALLS_OF_WORKER: usize = CALLS_OF_CLIENT / WORKERS;
/// The pause of a worker between two calls. All workers of a thousand clients make up to 2,000 calls a second.
const PAUSE_MS: u64 = 1_000;
const ANSWER_MS: u64 = 20;

/// How the service fails.
#[derive(Clone, Copy)]
enum Refusal {
    Status(u16),
    Later(u16, &'static str),
    Silence,
}

/// A service with a limited capacity in each second.
struct Service {
    /// Requests that it answers in one second.
    capacity: fn(second: u64) -> usize,
    refusal: Refusal,
    second: u64,
    taken: usize,
    requests: usize,
}

impl Service {
    fn new(capacity: fn(u64) -> usize, refusal: Refusal) -> Self {
        Self { capacity, refusal, second: 0, taken: 0, requests: 0 }
    }

    fn answer<T>(&mut self, call: &mut Call<T>, request: &Request, now_ms: u64) -> Result<()> {
        self.requests += 1;
        if now_ms / 1000 != self.second {
            (self.second, self.taken) = (now_ms / 1000, 0);
        }
        self.taken += 1;
        if self.taken > (self.capacity)(self.second) {
            return match self.refusal {
                Refusal::Status(status) => call.head(status, &[]).map(drop),
                Refusal::Later(status, text) => {
                    call.head(status, &[("retry-after", text)]).map(drop)
                }
                Refusal::Silence => call.failed(HostFailure::Network, ""),
            };
        }
        let body = if request.url().ends_with("/oauth/token") {
            r#"{"access_token": "t", "expires_in": 86400}"#.to_owned()
        } else if request.url().ends_with("/event_delivery") {
            no_events(request)
        } else {
            "[]".to_owned()
        };
        call.head(200, &[])?;
        call.chunk(body.as_bytes())?;
        call.end()
    }
}

/// The result of a window without events.
fn no_events(request: &Request) -> String {
    let query: serde_json::Value =
        serde_json::from_slice(request.body().unwrap_or_default()).expect("JSON");
    let (start, end) = (&query["start"], &query["end"]);
    format!(
        r#"{{"start": {start}, "end": {end}, "totalDelivered": "0", "totalErrors": "0", "totalFiltered": "0", "counts": []}}"#
    )
}

/// A worker that makes calls of a client.
struct Worker {
    client: Machine,
    call: Option<Call<Json>>,
    begun_ms: u64,
    begun: usize,
}

/// A call that has ended.
struct Ended {
    begun_ms: u64,
    good: bool,
}

fn run(service: &mut Service) -> Vec<Ended> {
    let mut workers = workers();
    let mut due: BinaryHeap<_> = (0..workers.len())
        .map(|index| Reverse((index as u64 * PAUSE_MS / workers.len() as u64, index)))
        .collect();
    let mut ended = Vec::with_capacity(*CLIENTS * CALLS_OF_CLIENT);
    while let Some(Reverse((now_ms, index))) = due.pop() {
        let worker = &mut workers[index];
        let (outcome, next_ms) = act(worker, service, now_ms);
        if let Some(good) = outcome {
            let begun_ms = worker.begun_ms;
            ended.push(Ended { begun_ms, good });
            worker.call = None;
        }
        if worker.call.is_some() || worker.begun < CALLS_OF_WORKER {
            due.push(Reverse((now_ms + next_ms, index)));
        }
    }
    ended
}

fn workers() -> Vec<Worker> {
    let of_client = |number: usize| {
        let options = options().jitter_seed(number as u64);
        let client = Machine::new(options).expect("good options");
        (0..WORKERS).map(move |_| Worker {
            client: client.clone(),
            call: None,
            begun_ms: 0,
            begun: 0,
        })
    };
    (0..*CLIENTS).flat_map(of_client).collect()
}

/// Makes one step of a worker. Returns whether its call succeeded, if it has ended, and the time
/// until the next step.
fn act(worker: &mut Worker, service: &mut Service, now_ms: u64) -> (Option<bool>, u64) {
    if worker.call.is_none() {
        worker.begun += 1;
        worker.begun_ms = now_ms;
    }
    let client = &worker.client;
    let begin = || client.audit_logs(&AuditLogsOptions::default()).expect("good arguments");
    let call = worker.call.get_or_insert_with(begin);
    match call.step(after(at(0), now_ms)) {
        Ok(Step::Send(request)) => match service.answer(call, &request, now_ms) {
            Ok(()) => (None, ANSWER_MS),
            Err(_) => (Some(false), PAUSE_MS),
        },
        Ok(Step::Wait { ms }) => (None, ms.into()),
        Ok(Step::Blocked { .. }) => (None, ANSWER_MS),
        Ok(Step::Done) => (Some(true), PAUSE_MS),
        Ok(other) => panic!("unexpected {other:?}"),
        Err(_) => (Some(false), PAUSE_MS),
    }
}

/// Runs all clients, and checks the bound of their load. Returns the calls.
fn storm(name: &str, capacity: fn(u64) -> usize, refusal: Refusal) -> Vec<Ended> {
    let mut service = Service::new(capacity, refusal);
    let ended = run(&mut service);
    assert_eq!(ended.len(), *CLIENTS * CALLS_OF_CLIENT);
    let good = ended.iter().filter(|call| call.good).count();
    let amplification = service.requests as f64 / ended.len() as f64;
    println!(
        "{name}: {} requests for {} calls, {amplification:.4} each; {good} calls are good",
        service.requests,
        ended.len()
    );
    assert!(amplification <= 1.1, "{name}: {amplification}");
    ended
}

/// This is enough for all clients: without a failure, they send less than 2,000 requests a second.
const ENOUGH: usize = 1_000_000;

#[test]
fn a_service_that_sheds_with_503() {
    let ended = storm("503", |_| *CLIENTS * 6 / 5, Refusal::Status(503));
    assert!(ended.iter().filter(|call| call.good).count() > ended.len() / 2);
}

#[test]
fn a_service_that_sheds_with_429_and_says_when_to_come_back() {
    let ended = storm("429, Retry-After: 2", |_| *CLIENTS * 6 / 5, Refusal::Later(429, "2"));
    assert!(ended.iter().filter(|call| call.good).count() > ended.len() / 2);
}

#[test]
fn an_outage_without_an_end() {
    let ended = storm("an outage without an end", |_| 0, Refusal::Status(503));
    assert!(ended.iter().all(|call| !call.good));
}

/// After the end of an outage, every call must succeed.
fn outage(name: &str, refusal: Refusal) {
    const BEGIN_S: u64 = 100;
    const END_S: u64 = 400;
    let capacity = |second| {
        if (BEGIN_S..END_S).contains(&second) { 0 } else { ENOUGH }
    };
    let ended = storm(name, capacity, refusal);
    let (during, later): (Vec<_>, Vec<_>) = ended
        .iter()
        .filter(|call| call.begun_ms >= BEGIN_S * 1000)
        .partition(|call| call.begun_ms < END_S * 1000);
    assert!(during.iter().filter(|call| call.good).count() < during.len() / 10);
    assert!(later.len() > ended.len() / 10, "{} calls", later.len());
    assert!(later.iter().all(|call| call.good));
}

#[test]
fn an_outage_of_503() {
    outage("an outage of 503", Refusal::Status(503));
}

#[test]
fn an_outage_of_the_network() {
    outage("an outage of the network", Refusal::Silence);
}

/// The number of collects, each with its own client. There are fewer than clients, because each
/// keeps its windows.
static COLLECTS: LazyLock<usize> = LazyLock::new(|| *CLIENTS / 10);
const COLLECT_PAUSE_MS: u64 = PAUSE_MS;

/// Runs a collect of 1,200 windows for each client, and checks the bound of their load. Returns how
/// many windows were read, and how many milliseconds that took.
fn collects(
    name: &str,
    capacity: fn(u64) -> usize,
    refusal: Refusal,
    patience_ms: Patience,
) -> (usize, u64) {
    let mut service = Service::new(capacity, refusal);
    let mut collects: Vec<Collect> =
        (0..*COLLECTS).map(|number| collect(number, patience_ms)).collect();
    // The workers of a collect have consecutive numbers.
    let mut drives: Vec<Option<Drive>> = (0..*COLLECTS * WORKERS).map(|_| None).collect();
    let mut due: BinaryHeap<_> = (0..drives.len())
        .map(|index| Reverse((index as u64 * PAUSE_MS / drives.len() as u64, index)))
        .collect();
    let mut last_ms = 0;
    while let Some(Reverse((now_ms, index))) = due.pop() {
        last_ms = now_ms;
        let (collect, drive) = (&mut collects[index / WORKERS], &mut drives[index]);
        if let Some(next_ms) = act_for(collect, drive, &mut service, now_ms) {
            due.push(Reverse((now_ms + next_ms, index)));
        }
    }
    let windows = *COLLECTS * CALLS_OF_CLIENT;
    let read: usize = collects.iter().map(|collect| collect.progress().done as usize).sum();
    let amplification = service.requests as f64 / windows as f64;
    println!(
        "{name}: {} requests for {windows} windows, {amplification:.4} each; {read} are read after {} s",
        service.requests,
        last_ms / 1_000,
    );
    assert!(amplification <= 1.1, "{name}: {amplification}");
    (read, last_ms)
}

fn collect(number: usize, patience_ms: Patience) -> Collect {
    let client = Machine::new(options().jitter_seed(number as u64));
    let range = Window::parse("2025-01-01T00:00:00Z", "2025-01-13T12:00:00Z").expect("a range");
    let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Reason])
        .patience_ms(patience_ms);
    let collect = client.expect("good options").collect(options);
    let collect = collect.expect("good options");
    assert_eq!(collect.progress().planned as usize, CALLS_OF_CLIENT);
    collect
}

/// Makes one step of a worker of a collect. Returns the time until its next step, if there is one.
fn act_for(
    collect: &mut Collect,
    drive: &mut Option<Drive>,
    service: &mut Service,
    now_ms: u64,
) -> Option<u64> {
    let now = after(at(0), now_ms);
    if drive.is_none() {
        match collect.next(now) {
            CollectStep::Drive(next) => *drive = Some(next),
            CollectStep::Idle => return Some(COLLECT_PAUSE_MS),
            CollectStep::Done => return None,
        }
    }
    let Drive { task, call, .. } = drive.as_mut()?;
    let has_ended = match call.step(now) {
        Ok(Step::Send(request)) => {
            // The call returns its error again when it is settled.
            drop(service.answer(call, &request, now_ms));
            false
        }
        Ok(Step::Wait { ms }) => return Some(ms.into()),
        Ok(Step::Blocked { .. }) => false,
        Ok(Step::Done) | Err(_) => true,
        Ok(other) => panic!("unexpected {other:?}"),
    };
    if !has_ended {
        return Some(ANSWER_MS);
    }
    collect.settle(*task, call, now).expect("it is under way");
    *drive = None;
    Some(COLLECT_PAUSE_MS)
}

const QUARTER: Patience = Patience::Milliseconds(900_000);

#[test]
fn patient_collects_of_a_service_that_sheds_with_503() {
    let (read, _) =
        collects("collects, 503", |_| *COLLECTS * 6 / 5, Refusal::Status(503), Patience::Endless);
    assert!(read > *COLLECTS * CALLS_OF_CLIENT / 2);
}

#[test]
fn patient_collects_of_a_service_that_sheds_with_429() {
    let refusal = Refusal::Later(429, "2");
    let (read, _) = collects(
        "collects, 429, Retry-After: 2",
        |_| *COLLECTS * 6 / 5,
        refusal,
        Patience::Endless,
    );
    assert!(read > *COLLECTS * CALLS_OF_CLIENT / 2);
}

#[test]
fn patient_collects_in_an_outage_without_an_end() {
    let (read, ms) = collects("collects, without an end", |_| 0, Refusal::Status(503), QUARTER);
    assert_eq!(read, 0);
    assert!(ms < 1_000_000);
}

#[test]
fn patient_collects_in_outages() {
    for (name, refusal) in [
        ("collects, 503", Refusal::Status(503)),
        ("collects, no network", Refusal::Silence),
        ("collects, 503, Retry-After: 40", Refusal::Later(503, "40")),
    ] {
        // Of 300 s, and every hundred seconds one of three.
        let capacity = |second| match second {
            100..400 => 0,
            _ if second % 100 < 3 => 0,
            _ => ENOUGH,
        };
        let (read, _) = collects(name, capacity, refusal, QUARTER);
        assert_eq!(read, *COLLECTS * CALLS_OF_CLIENT);
    }
}
