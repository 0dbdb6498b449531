//! Hundreds of calls of one client, with tokens that are valid for a minute and a service that
//! revokes them while requests are in flight, in virtual time: no call may fail.

use std::collections::BTreeMap;

use crate::support::{ADDRESS, after, at, client_of_one_try, sandbox};
use tallyfold::{
    Call, Code, CountTable, Dimension, Machine, Now, QueryOptions, Request, Result, Step, Window,
};
use tallyfold_sandbox::{Sandbox, SandboxOptions, SandboxResponse};

const WORKERS: usize = 500;
const CALLS_OF_WORKER: usize = 10;
/// The longest pause between two calls of a worker. With it, all calls together take three
/// lifetimes of a token.
const LONG_PAUSE_MS: u64 = 30_000;
/// With this longest pause, nearly all workers have a request in flight.
const SHORT_PAUSE_MS: u64 = 20;
/// The longest time for which a request is in flight, and also for its response.
const MOST_TRAVEL_MS: u64 = 400;

/// What happens at some time.
enum Event {
    /// A worker makes the next step of its call.
    Step(usize),
    /// A worker's request reaches the service.
    Arrive(usize, Request),
    /// The response reaches the worker.
    Answer(usize, Box<SandboxResponse>),
    Revoke,
}

struct World {
    client: Machine,
    service: Sandbox,
    calls: Vec<Option<Call<CountTable>>>,
    begun: Vec<usize>,
    most_pause_ms: u64,
    /// By time and, at the same time, in the order in which they were added.
    agenda: BTreeMap<(u64, u64), Event>,
    entries: u64,
    /// The workers that wait for a token, and the epoch since which they wait.
    blocked: Vec<(usize, u64)>,
    random: u64,
    failed: Vec<Code>,
    good: usize,
    /// The tokens, by the number of their request, that are revoked at once, before any use.
    stillborn: Vec<u32>,
}

impl World {
    fn new(seed: u64, most_pause_ms: u64) -> Self {
        let options = SandboxOptions::default().token_lifetime_s(60);
        let mut world = Self {
            client: client_of_one_try(),
            service: Sandbox::new(options).expect("good options"),
            calls: (0..WORKERS).map(|_| None).collect(),
            begun: vec![0; WORKERS],
            most_pause_ms,
            agenda: BTreeMap::new(),
            entries: 0,
            blocked: Vec::new(),
            random: seed,
            failed: Vec::new(),
            good: 0,
            stillborn: Vec::new(),
        };
        for worker in 0..WORKERS {
            let begin = world.below(most_pause_ms);
            world.enter(begin, Event::Step(worker));
        }
        world
    }

    /// A number below `limit`, by an LCG.
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    fn enter(&mut self, at_ms: u64, event: Event) {
        self.entries += 1;
        self.agenda.insert((at_ms, self.entries), event);
    }

    fn run(mut self) -> Self {
        while let Some(((now_ms, _), event)) = self.agenda.pop_first() {
            let epoch = self.client.token_epoch();
            self.happen(event, now_ms);
            if self.client.token_epoch() != epoch {
                let awake: Vec<_> = std::mem::take(&mut self.blocked);
                for (worker, _) in awake {
                    self.enter(now_ms, Event::Step(worker));
                }
            }
        }
        assert!(self.blocked.is_empty(), "calls that nobody woke");
        self
    }

    fn happen(&mut self, event: Event, now_ms: u64) {
        let now = after(at(0), now_ms);
        let travel_ms = 1 + self.below(MOST_TRAVEL_MS);
        match event {
            Event::Revoke => self.service.revoke_tokens(),
            Event::Step(worker) => self.step(worker, now_ms, travel_ms),
            Event::Arrive(worker, request) => {
                let response = self.answer(&request, now);
                self.enter(now_ms + travel_ms, Event::Answer(worker, Box::new(response)));
            }
            Event::Answer(worker, response) => {
                let call = self.calls[worker].as_mut().expect("a call");
                match hand_in(call, &response) {
                    Ok(()) => self.enter(now_ms, Event::Step(worker)),
                    Err(error) => self.end(worker, Err(error), now_ms),
                }
            }
        }
    }

    fn step(&mut self, worker: usize, now_ms: u64, travel_ms: u64) {
        let client = &self.client;
        let begun = &mut self.begun[worker];
        let call = self.calls[worker].get_or_insert_with(|| {
            *begun += 1;
            delivery(client)
        });
        match call.step(after(at(0), now_ms)) {
            Ok(Step::Send(request)) => {
                self.enter(now_ms + travel_ms, Event::Arrive(worker, request));
            }
            Ok(Step::Blocked { epoch }) => self.blocked.push((worker, epoch)),
            Ok(Step::Done) => self.end(worker, Ok(()), now_ms),
            Ok(other) => panic!("unexpected {other:?}"),
            Err(error) => self.end(worker, Err(error), now_ms),
        }
    }

    fn answer(&mut self, request: &Request, now: Now) -> SandboxResponse {
        let response = ask(&mut self.service, request, now);
        let minted = self.service.stats().control_token;
        if request.url().ends_with("/oauth/token") && self.stillborn.contains(&minted) {
            self.service.revoke_tokens();
        }
        response
    }

    fn end(&mut self, worker: usize, outcome: Result<()>, now_ms: u64) {
        self.calls[worker] = None;
        match outcome {
            Ok(()) => self.good += 1,
            Err(error) => self.failed.push(error.code()),
        }
        if self.begun[worker] < CALLS_OF_WORKER {
            let pause_ms = self.below(self.most_pause_ms);
            self.enter(now_ms + pause_ms, Event::Step(worker));
        }
    }
}

fn query(dimension: Dimension) -> QueryOptions {
    let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z");
    QueryOptions::new(window.expect("a window"), &[dimension])
}

fn delivery(client: &Machine) -> Call<CountTable> {
    client.event_delivery(&query(Dimension::Reason)).expect("good arguments")
}

fn ask(service: &mut Sandbox, request: &Request, now: Now) -> SandboxResponse {
    let target = request.url().strip_prefix(ADDRESS).expect("its address");
    let headers: Vec<(&str, &str)> = request.headers().collect();
    let body = request.body().unwrap_or_default();
    service.handle(request.method(), target, &headers, body, now)
}

fn hand_in<T>(call: &mut Call<T>, response: &SandboxResponse) -> Result<()> {
    let headers: Vec<(&str, &str)> =
        response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if call.head(response.status, &headers)? {
        call.chunk(&response.body)?;
        call.end()?;
    }
    Ok(())
}

fn all_good(world: World, what: &str) {
    let world = world.run();
    let all = WORKERS * CALLS_OF_WORKER;
    let stats = world.service.stats();
    println!(
        "{what}: {} of {all} calls are good, with {} tokens and {} requests",
        world.good, stats.control_token, stats.event_delivery
    );
    assert_eq!(world.failed, [], "{what}");
    assert_eq!(world.good, all, "{what}");
}

#[test]
fn no_call_fails_because_tokens_are_revoked_now_and_then() {
    for seed in 0..5 {
        let mut world = World::new(seed, LONG_PAUSE_MS);
        for _ in 0..3 {
            let at_ms = world.below(150_000);
            world.enter(at_ms, Event::Revoke);
        }
        all_good(world, &format!("three revocations, seed {seed}"));
    }
}

#[test]
fn no_call_fails_because_of_revocations_in_a_row() {
    // A request and its response take 800 ms at most, so that a call meets several of them.
    let apart_ms = [50, 100, 200, 300, 400, 500, 700, 1_000];
    for (seed, apart_ms) in apart_ms.into_iter().enumerate() {
        for (begin_ms, most_pause_ms) in [(20_000, LONG_PAUSE_MS), (1_500, SHORT_PAUSE_MS)] {
            let mut world = World::new(seed as u64, most_pause_ms);
            for number in 0..3 {
                world.enter(begin_ms + number * apart_ms, Event::Revoke);
            }
            all_good(world, &format!("three revocations, {apart_ms} ms apart"));
        }
    }
}

#[test]
fn no_call_fails_because_a_new_token_is_revoked_before_its_first_use() {
    for number in 2..5 {
        // One such token, or two in a row.
        for (begin_ms, most_pause_ms) in [(20_000, LONG_PAUSE_MS), (1_500, SHORT_PAUSE_MS)] {
            let mut world = World::new(number.into(), most_pause_ms);
            world.enter(begin_ms, Event::Revoke);
            world.stillborn.push(number);
            let what = format!("a revocation, and one of token {number} at once");
            all_good(world, &what);
            let mut world = World::new(number.into(), most_pause_ms);
            world.enter(begin_ms, Event::Revoke);
            world.stillborn.extend([number, number + 1]);
            all_good(world, &format!("{what}, and of the next one"));
        }
    }
}

/// Drives a call to its end against a service that responds to its endpoint with 401. Returns the
/// error's code, and the numbers of token requests and of other requests.
fn drive_refused<T>(
    client: &Machine,
    service: &mut Sandbox,
    mut call: Call<T>,
) -> (Code, usize, usize) {
    let (mut tokens, mut requests) = (0, 0);
    loop {
        match call.step(at(1)) {
            Ok(Step::Send(request)) if request.url().ends_with("/oauth/token") => {
                tokens += 1;
                let response = ask(service, &request, at(1));
                hand_in(&mut call, &response).expect("a token");
                // Other calls use the token successfully.
                logs(client, service);
            }
            Ok(Step::Send(_)) => {
                requests += 1;
                if let Err(error) = call.head(401, &[]).and_then(|_| call.end()) {
                    return (error.code(), tokens, requests);
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}

/// Makes a successful call to the other endpoint of the Control API.
fn logs(client: &Machine, service: &mut Sandbox) {
    let mut call = client.event_ingestion(&query(Dimension::Integration)).expect("good arguments");
    while let Step::Send(request) = call.step(at(1)).expect("a step") {
        let response = ask(service, &request, at(1));
        hand_in(&mut call, &response).expect("a good response");
    }
}

#[test]
fn an_endpoint_that_always_says_401_ends_the_call_also_where_another_takes_the_tokens() {
    let (client, mut service) = (client_of_one_try(), sandbox());
    logs(&client, &mut service);
    for _ in 0..5 {
        let call = delivery(&client);
        let (code, tokens, requests) = drive_refused(&client, &mut service, call);
        assert_eq!(code, Code::TokenRejected);
        assert!(tokens <= 5 && requests <= 5, "{tokens} tokens, {requests} requests");
    }
}

#[test]
fn a_service_that_takes_no_token_any_more_ends_each_call() {
    let (client, mut service) = (client_of_one_try(), sandbox());
    logs(&client, &mut service);
    let mut asked = Vec::new();
    for _ in 0..3 {
        let mut call = delivery(&client);
        let mut requests = 0;
        let code = loop {
            match call.step(at(1)).expect("a step") {
                Step::Send(request) if request.url().ends_with("/oauth/token") => {
                    hand_in(&mut call, &ask(&mut service, &request, at(1))).expect("a token");
                }
                _ => {
                    requests += 1;
                    if let Err(error) = call.head(401, &[]).and_then(|_| call.end()) {
                        break error.code();
                    }
                }
            }
        };
        assert_eq!(code, Code::TokenRejected);
        asked.push(requests);
    }
    // The first token had been good, and the next two might have been revoked; the fourth is the proof.
    assert_eq!(asked, [4, 1, 1]);
}

#[test]
fn many_calls_at_a_service_that_takes_no_token_any_more_all_end() {
    let mut world = World::new(7, LONG_PAUSE_MS);
    world.stillborn.extend(2..10_000);
    world.enter(20_000, Event::Revoke);
    let world = world.run();
    let all = WORKERS * CALLS_OF_WORKER;
    assert_eq!(world.good + world.failed.len(), all);
    assert!(world.failed.iter().all(|code| *code == Code::TokenRejected));
    let stats = world.service.stats();
    println!("{} tokens, {} requests for {all} calls", stats.control_token, stats.event_delivery);
    assert!(stats.event_delivery as usize <= 2 * all, "a loop");
}
