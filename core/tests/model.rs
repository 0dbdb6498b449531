//! One client makes several calls at once, through random sequences of responses, clock jumps and
//! cancellations. An observer checks what must hold whatever happens.
//!
//! `docs/testing.md` has the command of the full run.

use crate::support::{after, at, options};
use proptest::prelude::*;
use proptest::test_runner::Config;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tallyfold::{
    Api, AuditLogsOptions, Call, Code, Dimension, HostFailure, Machine, Now, QueryOptions, Request,
    Result, Step, Window,
};

const SLOTS: usize = 6;
const STEPS: usize = 200;
const MAX_RETRIES: u32 = 3;
/// The default of `timeout_ms`.
const TIMEOUT_MS: u64 = 30_000;
const LONGEST_WAIT_S: u64 = 60;
/// How often a call is sent again because of a 401, at most.
const MOST_REPLAYS: u32 = 4;
const TABLE: &str = r#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:05:00Z",
    "totalDelivered": "0", "totalErrors": "0", "totalFiltered": "0", "counts": []}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

/// The next event in the world around the client.
#[derive(Clone, Debug)]
enum Event {
    /// A new call takes a place. A call that is still there is dropped.
    Begin { slot: usize, api: Api },
    /// A call that awaits a response gets this one. Any other call makes its next step.
    Act { slot: usize, answer: Answer },
    /// Time passes, and the wall clock may jump.
    Pass { milliseconds: u64, jump_s: i64 },
    /// The host gives up a call.
    Close { slot: usize },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// A table, a page, or a token that lives for a day.
    Good,
    /// A token that is valid for this many seconds; otherwise like `Good`.
    ShortLived(u64),
    Status(u16),
    /// A status with the seconds of its `Retry-After`.
    Later(u16, u64),
    Broken(HostFailure),
    /// A good head, after which the exchange fails.
    BrokenBody,
    /// A good head, and a body that isn't JSON.
    Garbage,
}

fn answers() -> impl Strategy<Value = Answer> {
    let passing = prop::sample::select(vec![408, 429, 500, 502, 503, 504]);
    let broken = prop::sample::select(vec![HostFailure::Network, HostFailure::Timeout]);
    prop_oneof![
        6 => Just(Answer::Good),
        2 => (1_u64..40).prop_map(Answer::ShortLived),
        3 => passing.clone().prop_map(Answer::Status),
        2 => (passing, 0_u64..LONGEST_WAIT_S + 5)
            .prop_map(|(status, seconds)| Answer::Later(status, seconds)),
        2 => Just(Answer::Status(401)),
        1 => prop::sample::select(vec![302, 403, 404, 501]).prop_map(Answer::Status),
        2 => broken.prop_map(Answer::Broken),
        1 => Just(Answer::BrokenBody),
        1 => Just(Answer::Garbage),
    ]
}

/// `begun` contains the places where there may be a call.
fn events(begun: Vec<usize>) -> impl Strategy<Value = Event> {
    let slots = || prop::sample::select(begun.clone());
    let api = prop::sample::select(vec![Api::Control, Api::Control, Api::Orchestration]);
    let jump_s = prop_oneof![
        8 => Just(0_i64),
        1 => -200_000_i64..200_000,
        1 => -90_i64..90,
    ];
    let milliseconds = prop_oneof![4 => 0_u64..800, 2 => 0_u64..70_000, 1 => 0_u64..90_000_000];
    prop_oneof![
        3 => (0..SLOTS, api).prop_map(|(slot, api)| Event::Begin { slot, api }),
        20 => (slots(), answers()).prop_map(|(slot, answer)| Event::Act { slot, answer }),
        6 => (milliseconds, jump_s)
            .prop_map(|(milliseconds, jump_s)| Event::Pass { milliseconds, jump_s }),
        1 => slots().prop_map(|slot| Event::Close { slot }),
    ]
}

/// The places where calls have begun. They determine which events may happen next.
#[derive(Clone, Debug, Default)]
struct Begun([bool; SLOTS]);

impl ReferenceStateMachine for Begun {
    type State = Self;
    type Transition = Event;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Event> {
        let begun: Vec<usize> = (0..SLOTS).filter(|slot| state.0[*slot]).collect();
        if begun.is_empty() {
            let begin = |slot| Event::Begin { slot, api: Api::Control };
            return (0..SLOTS).prop_map(begin).boxed();
        }
        events(begun).boxed()
    }

    fn apply(mut state: Self, event: &Event) -> Self {
        match event {
            Event::Begin { slot, .. } => state.0[*slot] = true,
            Event::Close { slot } => state.0[*slot] = false,
            _ => {}
        }
        state
    }

    fn preconditions(state: &Self, event: &Event) -> bool {
        match event {
            Event::Act { slot, .. } | Event::Close { slot } => state.0[*slot],
            _ => true,
        }
    }
}

/// A call, as an observer sees it.
struct Caller {
    call: Call,
    api: Api,
    doing: Doing,
    /// Whether it has sent anything.
    sent: bool,
    /// How many retries were announced for it.
    retries: u32,
    /// How often it was sent again because of a 401.
    replays: u32,
    /// The number of tokens when a token request failed that this call would repeat. If there are
    /// more tokens since then, another call has repeated the request, and a request of this call
    /// isn't a retry.
    repeats: Option<u32>,
    /// The end of the wait that it has announced.
    not_before_ms: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    Asks,
    /// For the token request with this number.
    WaitsFor(u32),
    AwaitsToken {
        asked_at: Now,
    },
    AwaitsAnswer {
        bearer: String,
        asked_at: Now,
    },
    Ended,
}

/// The newest token of an API.
struct Newest {
    name: String,
    asked_at: Now,
    lifetime_ms: u64,
    /// Whether it was refused, or was expired by a clock, which may have been set back since then.
    over: bool,
}

/// The state of one API.
#[derive(Default)]
struct Service {
    newest: Option<Newest>,
    tokens: u32,
    /// Until when the API, and its token endpoint, accept no requests.
    floor_ms: u64,
    token_floor_ms: u64,
    token_requests: u32,
    /// The number of the latest token request and when it was sent, if its failure was transient.
    failed_flight: Option<(u32, Now)>,
}

struct World {
    client: Machine,
    now: Now,
    callers: [Option<Caller>; SLOTS],
    services: [Service; 2],
    calls_that_sent: u32,
    retries_paid: u32,
}

impl StateMachineTest for World {
    type SystemUnderTest = Self;
    type Reference = Begun;

    fn init_test(_: &Begun) -> Self {
        let options = options()
            .max_retries(MAX_RETRIES)
            .longest_retry_wait_ms(LONGEST_WAIT_S * 1000)
            .jitter_seed(7);
        Self {
            client: Machine::new(options).expect("good options"),
            now: at(0),
            callers: Default::default(),
            services: Default::default(),
            calls_that_sent: 0,
            retries_paid: 0,
        }
    }

    fn apply(mut world: Self, _: &Begun, event: Event) -> Self {
        match event {
            Event::Begin { slot, api } => {
                let call = world.begin(api);
                world.callers[slot] = Some(call);
            }
            Event::Act { slot, answer } => world.with(slot, |world, caller| match caller.doing {
                Doing::AwaitsToken { asked_at } => world.answer_token(caller, answer, asked_at),
                Doing::AwaitsAnswer { .. } => world.answer(caller, answer),
                Doing::Asks | Doing::WaitsFor(_) => world.step(caller),
                Doing::Ended => {}
            }),
            Event::Pass { milliseconds, jump_s } => {
                world.now = after(world.now, milliseconds);
                world.now.unix_ms += jump_s * 1000;
            }
            Event::Close { slot } => {
                if let Some(mut caller) = world.callers[slot].take() {
                    caller.call.close();
                }
            }
        }
        world
    }

    fn check_invariants(world: &Self, _: &Begun) {
        for api in [Api::Control, Api::Orchestration] {
            let fetches = |caller: &&Caller| {
                caller.api == api && matches!(caller.doing, Doing::AwaitsToken { .. })
            };
            let in_flight = world.callers.iter().flatten().filter(fetches).count();
            assert!(in_flight <= 1, "{in_flight} token requests of {api:?}");
        }
        for caller in world.callers.iter().flatten() {
            assert!(caller.retries <= MAX_RETRIES, "{} retries", caller.retries);
            assert!(caller.replays <= MOST_REPLAYS, "{} replays", caller.replays);
        }
        let most = 1_000 + 9 * world.calls_that_sent;
        assert!(
            100 * world.retries_paid <= most,
            "{} retries for {} calls",
            world.retries_paid,
            world.calls_that_sent
        );
    }

    /// Every call must end once the service works again.
    fn teardown(mut world: Self, state: Begun) {
        for round in 0.. {
            assert!(round < 100, "a call does not end");
            let mut busy = false;
            for slot in 0..SLOTS {
                world.with(slot, |world, caller| {
                    busy |= caller.doing != Doing::Ended;
                    match caller.doing {
                        Doing::AwaitsToken { asked_at } => {
                            world.answer_token(caller, Answer::Good, asked_at);
                        }
                        Doing::AwaitsAnswer { .. } => world.answer(caller, Answer::Good),
                        Doing::Asks | Doing::WaitsFor(_) => world.step(caller),
                        Doing::Ended => {}
                    }
                });
                Self::check_invariants(&world, &state);
            }
            if !busy {
                break;
            }
            world.now = after(world.now, 20_000);
        }
    }
}

impl World {
    fn begin(&self, api: Api) -> Caller {
        let call = match api {
            Api::Control => {
                let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z");
                let query = QueryOptions::new(window.expect("a window"), &[Dimension::Reason]);
                self.client.event_delivery(&query).map(Call::untyped)
            }
            Api::Orchestration => {
                self.client.audit_logs(&AuditLogsOptions::default()).map(Call::untyped)
            }
        };
        Caller {
            call: call.expect("good arguments"),
            api,
            doing: Doing::Asks,
            sent: false,
            retries: 0,
            replays: 0,
            repeats: None,
            not_before_ms: 0,
        }
    }

    fn with(&mut self, slot: usize, act: impl FnOnce(&mut Self, &mut Caller)) {
        if let Some(mut caller) = self.callers[slot].take() {
            act(self, &mut caller);
            self.callers[slot] = Some(caller);
        }
    }

    fn step(&mut self, caller: &mut Caller) {
        let now = self.now;
        let service = &mut self.services[caller.api as usize];
        if let Some(newest) = &mut service.newest {
            newest.over |= now.since(newest.asked_at) >= newest.lifetime_ms;
        }
        // A call that waits for a token shares the failure of the token request, for a minute.
        let shares = service.floor_ms <= now.monotonic_ms
            && service.failed_flight.is_some_and(|(flight, then)| {
                caller.doing == Doing::WaitsFor(flight) && now.since(then) < 60_000
            });
        match caller.call.step(now) {
            Ok(Step::Send(request)) => self.send(caller, &request),
            Ok(Step::Blocked { .. }) => {
                caller.doing = Doing::WaitsFor(service.token_requests);
            }
            Ok(Step::Wait { ms }) => {
                assert!(ms > 0 && ms < 1 << 31, "a wait of {ms} ms");
                if shares {
                    caller.repeats = Some(service.tokens);
                    caller.retries += 1;
                    caller.doing = Doing::Asks;
                }
            }
            Ok(Step::Done) => {
                assert!(caller.call.output().is_ok());
                caller.doing = Doing::Ended;
            }
            Ok(other) => panic!("unexpected {other:?}"),
            Err(error) => {
                assert_ne!(error.code(), Code::OutOfOrder, "{error}");
                caller.doing = Doing::Ended;
            }
        }
    }

    fn send(&mut self, caller: &mut Caller, request: &Request) {
        let now = self.now;
        assert!(now.monotonic_ms >= caller.not_before_ms, "sent too early");
        self.calls_that_sent += u32::from(!caller.sent);
        caller.sent = true;
        let service = &mut self.services[caller.api as usize];
        let is_of_api = request.url().contains(match caller.api {
            Api::Control => "/v1.1/",
            Api::Orchestration => "/api/v1/",
        });
        if request.url().ends_with("/oauth/token") {
            assert!(service.token_floor_ms <= now.monotonic_ms, "below a floor");
            assert!(service.wants_token(now), "a token that is good is replaced");
            self.retries_paid += u32::from(caller.repeats == Some(service.tokens));
            service.token_requests += 1;
            service.failed_flight = None;
            caller.doing = Doing::AwaitsToken { asked_at: now };
            return;
        }
        assert!(is_of_api, "{}", request.url());
        assert!(service.floor_ms <= now.monotonic_ms, "sent below a floor");
        let bearer = request.headers().find(|(name, _)| *name == "authorization");
        let bearer = bearer.expect("a token").1.to_owned();
        let prefix = format!("Bearer {}-", caller.api.as_str());
        assert!(bearer.starts_with(&prefix), "{bearer} for {:?}", caller.api);
        caller.repeats = None;
        caller.doing = Doing::AwaitsAnswer { bearer, asked_at: now };
    }

    fn answer_token(&mut self, caller: &mut Caller, answer: Answer, asked_at: Now) {
        let lifetime_s = match answer {
            Answer::ShortLived(seconds) => seconds,
            _ => 86_400,
        };
        let service = &mut self.services[caller.api as usize];
        let name = format!("{}-{}", caller.api.as_str(), service.tokens);
        let body = format!(r#"{{"access_token": "{name}", "expires_in": {lifetime_s}}}"#);
        let outcome = hand_in(&mut caller.call, answer, &body);
        let gained = matches!(answer, Answer::Good | Answer::ShortLived(_));
        if gained {
            service.tokens += 1;
            service.newest =
                Some(Newest { name, asked_at, lifetime_ms: lifetime_s * 1000, over: false });
        }
        if let Answer::Later(_, seconds) = answer
            && seconds <= LONGEST_WAIT_S
        {
            // A host reports a response within the time limit.
            let came_ms = self.now.monotonic_ms.min(asked_at.monotonic_ms + TIMEOUT_MS);
            let until_ms = came_ms + seconds * 1000;
            service.token_floor_ms = service.token_floor_ms.max(until_ms);
        }
        let attempt = caller.call.attempt().expect("a request that has ended");
        // A failure that ends this call may still be transient for the calls that wait.
        service.failed_flight = is_passing(answer).then_some((service.token_requests, asked_at));
        let tokens = service.tokens;
        self.account(caller, outcome, attempt.wait_ms.map(u64::from));
        caller.repeats = attempt.wait_ms.map(|_| tokens);
    }

    fn answer(&mut self, caller: &mut Caller, answer: Answer) {
        let Doing::AwaitsAnswer { bearer, asked_at } = &caller.doing else {
            return;
        };
        let service = &mut self.services[caller.api as usize];
        if matches!(answer, Answer::Status(401))
            && let Some(newest) = &mut service.newest
            && bearer.ends_with(&newest.name)
        {
            newest.over = true;
        }
        if let Answer::Later(_, seconds) = answer
            && seconds <= LONGEST_WAIT_S
        {
            // A host reports a response within the time limit.
            let came_ms = self.now.monotonic_ms.min(asked_at.monotonic_ms + TIMEOUT_MS);
            let until_ms = came_ms + seconds * 1000;
            service.floor_ms = service.floor_ms.max(until_ms);
        }
        let outcome = hand_in(&mut caller.call, answer, TABLE);
        let attempt = caller.call.attempt().expect("a request that has ended");
        let again_after_401 = attempt.code == Some(Code::TokenRejected);
        caller.replays += u32::from(again_after_401 && attempt.wait_ms.is_some());
        let wait_ms = attempt.wait_ms.filter(|_| !again_after_401);
        assert!(wait_ms.is_none() || is_passing(answer), "{answer:?}");
        self.retries_paid += u32::from(wait_ms.is_some());
        self.account(caller, outcome, wait_ms.map(u64::from));
    }

    fn account(&mut self, caller: &mut Caller, outcome: Result<()>, wait_ms: Option<u64>) {
        caller.doing = match outcome {
            Ok(()) => Doing::Asks,
            Err(_) => Doing::Ended,
        };
        if let Some(wait_ms) = wait_ms {
            assert_eq!(caller.doing, Doing::Asks, "a call that ended tries again");
            caller.retries += 1;
            caller.not_before_ms = self.now.monotonic_ms + wait_ms;
        }
    }
}

impl Service {
    /// Whether a new token is needed: there is none, it was refused or has expired, or it expires
    /// soon.
    fn wants_token(&self, now: Now) -> bool {
        self.newest.as_ref().is_none_or(|newest| {
            let margin_ms = 300_000.min(newest.lifetime_ms / 10);
            newest.over || now.since(newest.asked_at) >= newest.lifetime_ms - margin_ms
        })
    }
}

fn is_passing(answer: Answer) -> bool {
    match answer {
        Answer::Status(status) => [408, 429, 500, 502, 503, 504].contains(&status),
        Answer::Later(_, seconds) => seconds <= LONGEST_WAIT_S,
        Answer::Broken(_) | Answer::BrokenBody => true,
        _ => false,
    }
}

/// Passes a status to the call, and an empty body if it wants one.
fn bare(call: &mut Call, status: u16, headers: &[(&str, &str)]) -> Result<()> {
    match call.head(status, headers)? {
        true => call.end(),
        false => Ok(()),
    }
}

fn hand_in(call: &mut Call, answer: Answer, body: &str) -> Result<()> {
    let good_head = |call: &mut Call| call.head(200, &[JSON]).map(|wanted| assert!(wanted));
    match answer {
        Answer::Good | Answer::ShortLived(_) => {
            good_head(call)?;
            call.chunk(body.as_bytes())?;
            call.end()
        }
        Answer::Status(status) => bare(call, status, &[]),
        Answer::Later(status, seconds) => {
            let seconds = seconds.to_string();
            bare(call, status, &[("retry-after", &seconds)])
        }
        Answer::Broken(failure) => call.failed(failure, ""),
        Answer::BrokenBody => {
            good_head(call)?;
            call.chunk(b"{")?;
            call.failed(HostFailure::Network, "")
        }
        Answer::Garbage => {
            good_head(call)?;
            call.chunk(b"garbage")
        }
    }
}

fn config() -> Config {
    Config {
        failure_persistence: None,
        // A step that is left out while a failure shrinks may leave other steps without a call.
        max_local_rejects: u32::MAX,
        ..Config::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens(sequential STEPS => World);
}
