//! Ranges of a service that is sometimes down, read by many workers in virtual time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use tallyfold::{
    Attempt, Call, Code, Collect, CollectOptions, CollectStep, Drive, FollowOptions, FollowStep,
    HostFailure, Machine, Metric, Now, Patience, Progress, Request, Settled, Step, Window,
};
use tallyfold_sandbox::SandboxOptions;

use super::world::{
    DIMENSIONS, Random, Trouble, World, assert_same_counts, collect_options, instant, new_year,
    step, window,
};
use crate::support::{after, at, exchange, options};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const MONTH: u64 = 30 * DAY;
const WINDOWS: u32 = 2_880;

/// How the service is down.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Down {
    Status,
    RetryAfter(&'static str),
    Refused,
    Silent,
    /// Only the token endpoint is down.
    Tokens,
}

/// An outage that begins when `at` windows have been read.
struct Outage {
    at: u32,
    ms: u64,
    until_ms: Option<u64>,
}

/// Workers of one collect, a service with outages, and a clock.
struct Simulation {
    world: World,
    random: Random,
    down: Down,
    outages: Vec<Outage>,
    /// A window that can't be read although the service is up.
    bad: Option<Window>,
    kept: u32,
    requests: u32,
    attempts: Vec<Attempt>,
    settled: BTreeMap<&'static str, u32>,
    waits: Vec<Progress>,
}

/// What a worker does next.
enum Act {
    Ask,
    Step(Drive),
    Answer(Drive, Request, bool),
}

impl Simulation {
    fn collect(&self, options: CollectOptions) -> Collect {
        let collect = self.world.client.collect(options);
        collect.expect("good options")
    }

    fn new(world: World, down: Down, seed: u64) -> Self {
        Self {
            world,
            random: Random(seed),
            down,
            outages: Vec::new(),
            bad: None,
            kept: 0,
            requests: 0,
            attempts: Vec::new(),
            settled: BTreeMap::new(),
            waits: Vec::new(),
        }
    }

    fn with_outages(mut self, outages: impl IntoIterator<Item = (u32, u64)>) -> Self {
        self.outages =
            outages.into_iter().map(|(at, ms)| Outage { at, ms, until_ms: None }).collect();
        self
    }

    fn is_down(&mut self) -> bool {
        let (kept, now_ms) = (self.kept, self.world.now.monotonic_ms);
        let reached = self.outages.iter_mut().filter(|outage| outage.at <= kept);
        reached.fold(false, |down, outage| {
            let until_ms = *outage.until_ms.get_or_insert(now_ms + outage.ms);
            down | (now_ms < until_ms)
        })
    }

    /// Drives a collect to its end with this many workers.
    fn run(&mut self, collect: &mut Collect, workers: u32) {
        let begin_ms = self.world.now.monotonic_ms;
        let mut due = BinaryHeap::new();
        let mut acts: BTreeMap<u64, Act> = BTreeMap::new();
        let mut number = 0;
        let mut idle = 0;
        let mut add =
            |due: &mut BinaryHeap<_>, acts: &mut BTreeMap<u64, Act>, ms: u64, act: Act| {
                number += 1;
                acts.insert(number, act);
                due.push(Reverse((ms, number)));
            };
        for _ in 0..workers {
            add(&mut due, &mut acts, begin_ms, Act::Ask);
        }
        while let Some(Reverse((ms, number))) = due.pop() {
            let passed = ms - self.world.now.monotonic_ms;
            self.world.now = after(self.world.now, passed);
            let act = acts.remove(&number).expect("it was put there");
            match self.act(act, collect) {
                Some((wait_ms, act)) => add(&mut due, &mut acts, ms + wait_ms, act),
                None => idle += 1,
            }
            // A settled call may make work for all workers.
            if idle > 0 && self.has_settled() {
                for _ in 0..std::mem::take(&mut idle) {
                    add(&mut due, &mut acts, ms, Act::Ask);
                }
            }
        }
        assert!(matches!(collect.next(self.world.now), CollectStep::Done));
    }

    fn has_settled(&mut self) -> bool {
        self.settled.remove("new").is_some()
    }

    /// Does something for a worker. Returns what the worker does next, and after how many
    /// milliseconds.
    fn act(&mut self, act: Act, collect: &mut Collect) -> Option<(u64, Act)> {
        match act {
            Act::Ask => match collect.next(self.world.now) {
                CollectStep::Drive(drive) => Some((0, Act::Step(drive))),
                CollectStep::Idle | CollectStep::Done => None,
            },
            Act::Step(mut drive) => match drive.call.step(self.world.now) {
                Ok(Step::Send(request)) => {
                    let is_down = self.is_down_for(&request);
                    // Tokens are fetched every five seconds and not for each call, so their
                    // requests count only during an outage.
                    let counts = is_down || !request.url().ends_with("token");
                    self.requests += u32::from(counts);
                    let ms = match self.down {
                        Down::Silent if is_down => 30_000,
                        _ if is_down => 1 + self.random.below(50),
                        _ => 50 + self.random.below(400),
                    };
                    Some((ms, Act::Answer(drive, request, is_down)))
                }
                Ok(Step::Wait { ms }) => Some((ms.into(), Act::Step(drive))),
                Ok(Step::Blocked { .. }) => Some((20, Act::Step(drive))),
                Ok(Step::Done) | Err(_) => {
                    self.settle(drive, collect);
                    Some((0, Act::Ask))
                }
                Ok(other) => panic!("unexpected {other:?}"),
            },
            Act::Answer(mut drive, request, was_down) => {
                // Some requests fail although they were sent in time.
                let is_down = was_down || self.random.below(2) == 0 && self.is_down_for(&request);
                let is_bad = self.bad == Some(drive.window) && !request.url().ends_with("token");
                self.answer(&mut drive.call, &request, is_down || is_bad);
                self.attempts.extend(drive.call.attempt());
                Some((0, Act::Step(drive)))
            }
        }
    }

    fn is_down_for(&mut self, request: &Request) -> bool {
        let is_down = self.is_down();
        is_down && (self.down != Down::Tokens || request.url().ends_with("token"))
    }

    fn answer<T>(&mut self, call: &mut Call<T>, request: &Request, fails: bool) {
        let headers = [("content-type", "application/json")];
        let done = match self.down {
            _ if !fails => exchange(call, request, &mut self.world.sandbox, self.world.now),
            Down::Status | Down::Tokens => call.head(503, &headers).and_then(|_| call.end()),
            Down::RetryAfter(text) => {
                call.head(503, &[("retry-after", text)]).and_then(|_| call.end())
            }
            Down::Refused => call.failed(HostFailure::Network, "ECONNREFUSED"),
            Down::Silent => call.failed(HostFailure::Timeout, ""),
        };
        // The call returns its error again when it is settled.
        drop(done);
    }

    fn settle(&mut self, mut drive: Drive, collect: &mut Collect) {
        let settled = collect.settle(drive.task, &mut drive.call, self.world.now);
        let name = match settled.expect("the task is under way") {
            Settled::Kept { .. } => "kept",
            Settled::Halved => "halved",
            Settled::Failed(_) => "failed",
            Settled::GivenBack => "given back",
            Settled::TooLarge => "too large",
            Settled::Postponed => "postponed",
            Settled::Probed => "probed",
        };
        self.kept += u32::from(name == "kept");
        *self.settled.entry(name).or_default() += 1;
        *self.settled.entry("new").or_default() += 1;
        let progress = collect.progress();
        if progress.waiting_ms.is_some() {
            self.waits.push(progress);
        }
    }

    fn settled(&self, name: &str) -> u32 {
        self.settled.get(name).copied().unwrap_or(0)
    }
}

fn client(seed: u64) -> Machine {
    let options = options().jitter_seed(seed);
    Machine::new(options).expect("good options")
}

fn world(seed: u64) -> World {
    let options = SandboxOptions::default()
        // Tokens must be fetched during outages, too.
        .token_lifetime_s(5);
    let mut world = World::of(options);
    let mut random = Random(seed);
    for _ in 0..300 {
        let ms = random.below(MONTH * 1_000);
        world.record(ms, &mut random);
    }
    world.client = client(seed);
    world
}

fn patient(seconds: u64, patience_s: u64) -> CollectOptions {
    collect_options(seconds, "15m").patience_ms(Patience::Milliseconds(patience_s * 1_000))
}

/// Ten outages of 0.3 to 120 s and one of an hour, in random order.
fn eleven_outages(random: &mut Random) -> Vec<(u32, u64)> {
    let mut outages: Vec<(u32, u64)> = (0..10)
        .map(|number| {
            // From 0.3 s on, each about twice as long as the one before.
            let ms = [300, 600, 1_200, 2_400, 4_700, 9_300, 18_000, 36_000, 71_000, 120_000];
            (random.below(WINDOWS.into()) as u32, ms[number])
        })
        .collect();
    outages.push((random.below(WINDOWS.into()) as u32, HOUR * 1_000));
    outages
}

#[test]
fn a_month_with_ten_outages_and_one_of_an_hour_is_whole() {
    for down in [Down::Status, Down::RetryAfter("7"), Down::Refused, Down::Silent, Down::Tokens] {
        for seed in 0..3 {
            let outages = eleven_outages(&mut Random(seed));
            let mut simulation = Simulation::new(world(seed), down, seed).with_outages(outages);
            let options = patient(MONTH, 2 * HOUR);
            let mut collect = simulation.collect(options);
            simulation.run(&mut collect, 8);
            let table = collect.finish().expect("a whole table");
            assert_same_counts(&table, &simulation.world.truth(window(0, MONTH)));
            let ratio = f64::from(simulation.requests) / f64::from(WINDOWS);
            println!(
                "{down:?}, seed {seed}: {} requests, {ratio:.4} for each window, {} postponed, {} halved",
                simulation.requests,
                simulation.settled("postponed"),
                simulation.settled("halved"),
            );
            assert!(ratio <= 1.1, "{down:?}, seed {seed}: {ratio}");
            assert!(simulation.settled("postponed") > 0 && simulation.settled("failed") == 0);
            let halves = simulation.settled("halved");
            assert!(halves == 0 || down == Down::Silent);
            assert_eq!(table.windows().len() as u32, WINDOWS + halves);
        }
    }
}

/// Without patience, the first outage of some seconds ends the collect.
#[test]
fn without_patience_an_outage_ends_the_collect() {
    let outages = [(500, 3_000)];
    let mut simulation = Simulation::new(world(1), Down::Status, 1).with_outages(outages);
    let mut collect = simulation.collect(patient(MONTH, 0));
    simulation.run(&mut collect, 8);
    let ended = collect.finish().expect_err("windows are missing");
    assert_eq!(ended.error.code(), Code::ServerError);
    assert_eq!(simulation.settled("postponed"), 0);
    assert!(collect.progress().failed >= 8 && collect.progress().done < 520);
}

/// With workers that all wait, and one try at a time.
#[test]
fn in_an_outage_one_call_at_a_time_tries_and_says_when() {
    let outages = [(40, 120_000)];
    let mut simulation = Simulation::new(world(2), Down::Status, 2).with_outages(outages);
    let mut collect = simulation.collect(patient(DAY, 900));
    simulation.run(&mut collect, 8);
    assert!(collect.finish().is_ok());
    let failed = simulation.attempts.iter().filter(|attempt| attempt.code.is_some());
    let waits: Vec<u32> =
        failed.map(|attempt| attempt.wait_ms.expect("it is tried again")).collect();
    // Up to eight were under way; then one after the other, each with about twice the wait.
    let (first, tries) = waits.split_at(waits.partition_point(|ms| *ms <= 500));
    assert!((5..=8).contains(&first.len()), "{waits:?}");
    for (number, ms) in tries.iter().enumerate() {
        let most = (1_000 << number).min(60_000);
        assert!((most / 2..=most).contains(ms), "{waits:?}");
    }
    assert!((7..=9).contains(&tries.len()), "{waits:?}");
    // Progress tells the same.
    assert!(simulation.waits.len() >= 12);
    let longest = simulation.waits.iter().filter_map(|progress| progress.waiting_ms).max();
    assert!(longest > Some(15_000), "{longest:?}");
    assert_eq!(collect.progress().waiting_ms, None);
}

#[test]
fn when_the_patience_is_over_the_collect_ends_with_what_it_has() {
    let outages = [(50, u64::MAX / 2)];
    for (down, code) in [
        (Down::Status, Code::ServerError),
        (Down::Refused, Code::NetworkFailed),
        (Down::Tokens, Code::ServerError),
    ] {
        let mut simulation = Simulation::new(world(3), down, 3).with_outages(outages);
        let mut collect = simulation.collect(patient(MONTH, 900));
        simulation.run(&mut collect, 8);
        let ended = collect.finish().expect_err("windows are missing");
        assert_eq!(ended.error.code(), code);
        let text = ended.to_string();
        assert!(
            text.contains("; the service has been down for 9")
                && text.contains(" s, longer than the patience for it"),
            "{text}"
        );
        assert!(!text.contains("budget"), "{text}");
        let partial = ended.partial.expect("what was read before");
        let windows = partial.windows().len() as u32;
        assert!(windows >= 50 && windows == collect.progress().done);
        let covered: u64 = ended.gaps.iter().map(|gap| gap_ms(*gap)).sum();
        assert_eq!(covered, u64::from(WINDOWS - windows) * 900_000);
        assert!(simulation.requests < windows + 60, "{} requests", simulation.requests);
        // Fifteen minutes, and no more than the last try beyond.
        let lasted_s = simulation.world.now.monotonic_ms / 1_000 - super::world::LATER;
        assert!((900..1_000).contains(&lasted_s), "{down:?}: {lasted_s} s");
    }
}

fn gap_ms(gap: Window) -> u64 {
    (gap.end().unix_ms() - gap.start().unix_ms()) as u64
}

/// It is no outage if others can be read, before and after.
#[test]
fn one_bad_window_never_stalls_the_collect() {
    for workers in [1, 8] {
        for index in [0, 40, 95] {
            let bad = window(index * 900, index * 900 + 900);
            let mut simulation = Simulation::new(world(4), Down::Status, 4);
            simulation.bad = Some(bad);
            let options = patient(DAY, 7 * DAY);
            let mut collect = simulation.collect(options);
            simulation.run(&mut collect, workers);
            let ended = collect.finish().expect_err("a window is missing");
            assert_eq!(ended.gaps, [bad]);
            assert_eq!(ended.failures[0].1.code(), Code::ServerError);
            let text = ended.to_string();
            assert!(!text.contains("down"), "{text}");
            let lasted_s = simulation.world.now.monotonic_ms / 1_000 - super::world::LATER;
            assert!(lasted_s < 60, "{lasted_s} s with {workers} workers at {index}");
            assert!(simulation.requests <= 115, "{} requests", simulation.requests);
        }
    }
}

/// Two that shield each other, at the end.
#[test]
fn a_bad_window_that_an_earlier_collect_left_does_not_stall_the_next_one() {
    let mut world = world(6);
    world.client = client(6);
    let bad = window(900, 1_800);
    let mut have = None;
    for requests in [8, 8] {
        let options = patient(HOUR, 7 * DAY).have(have);
        let mut collect = world.client.collect(options).expect("good options");
        world.run(&mut collect, |window| (window == bad).then_some(Trouble::Status(500)));
        let ended = collect.finish().expect_err("a window is missing");
        assert_eq!(ended.gaps, [bad]);
        assert!(world.requests() < 3 * requests, "{}", world.requests());
        world.asked.clear();
        have = ended.partial;
    }
}

#[test]
fn two_bad_windows_do_not_stall_it_either() {
    let mut world = world(5);
    world.client = client(5);
    let bad = [window(0, 900), window(900, 1_800)];
    let mut collect = world.client.collect(patient(2 * HOUR, 7 * DAY)).expect("good options");
    let begin_ms = world.now.monotonic_ms;
    world.run(&mut collect, |window| bad.contains(&window).then_some(Trouble::Status(500)));
    let ended = collect.finish().expect_err("two windows are missing");
    assert_eq!(ended.gaps, [window(0, 1_800)]);
    let lasted_s = (world.now.monotonic_ms - begin_ms) / 1_000;
    println!("{lasted_s} s, {} requests", world.requests());
    assert!(lasted_s < 600, "{lasted_s} s");
}

#[test]
fn a_longer_retry_after_is_waited_for_if_the_patience_allows() {
    // Ten minutes, where a call waits for one.
    let outages = || [(30, 5_000)];
    let down = Down::RetryAfter("600");
    let mut simulation = Simulation::new(world(6), down, 6).with_outages(outages());
    let mut collect = simulation.collect(patient(DAY, 900));
    simulation.run(&mut collect, 8);
    assert!(collect.finish().is_ok());
    let lasted_s = simulation.world.now.monotonic_ms / 1_000 - super::world::LATER;
    assert!((600..700).contains(&lasted_s), "{lasted_s} s");
    assert!(simulation.requests < 96 + 10, "{} requests", simulation.requests);
    let asked = simulation.attempts.iter().filter_map(|attempt| attempt.wait_ms);
    assert!(asked.clone().count() > 0 && asked.clone().all(|ms| ms >= 600_000));

    let mut simulation = Simulation::new(world(6), down, 6).with_outages(outages());
    let mut collect = simulation.collect(patient(DAY, 500));
    simulation.run(&mut collect, 8);
    let ended = collect.finish().expect_err("windows are missing");
    assert_eq!(ended.error.code(), Code::RetryLater);
}

/// Other calls of the client keep their own limit.
#[test]
fn other_calls_of_the_client_do_not_wait_so_long() {
    let mut world = world(7);
    let mut collect = world.client.collect(patient(DAY, 9_000)).expect("good options");
    assert!(world.run_one(&mut collect, |_| Some(Trouble::Later)));
    assert!(collect.progress().waiting_ms >= Some(7_200_000));
    let other = world
        .client
        .metrics(Metric::EventDelivery, &tallyfold::QueryOptions::new(window(0, 900), &DIMENSIONS));
    let mut other = other.expect("good arguments");
    let before = world.now;
    world.drive(&mut other, window(0, 900), None);
    assert!(other.output().is_ok() && world.now == before);
}

#[test]
fn a_probe_waits_too() {
    let mut world = world(8);
    let options = patient(DAY, 900).probe(true);
    let mut collect = world.client.collect(options).expect("good options");
    let mut tries = 0;
    let begin_ms = world.now.monotonic_ms;
    let mut down = |_| {
        tries += 1;
        (tries == 2 || tries == 3).then_some(Trouble::Status(503))
    };
    world.run(&mut collect, &mut down);
    assert_same_counts(&collect.finish().expect("a whole table"), &world.truth(window(0, DAY)));
    assert_eq!(tries, 97 + 2, "one more for the probe, and two that failed");
    assert!(world.now.monotonic_ms > begin_ms);

    let mut world = World::empty();
    let options = patient(DAY, 60).probe(true);
    let mut collect = world.client.collect(options).expect("good options");
    world.run(&mut collect, |_| Some(Trouble::Network));
    let ended = collect.finish().expect_err("nothing was read");
    assert_eq!((ended.error.code(), ended.partial), (Code::NetworkFailed, None));
    assert_eq!(ended.gaps, [window(0, DAY)]);
}

#[test]
fn an_outage_does_not_skip_a_probe() {
    for trouble in [Trouble::Status(503), Trouble::Status(504), Trouble::Timeout, Trouble::Silence]
    {
        let mut world = World::of(SandboxOptions::default().closed_windows(true));
        world.client = client(8);
        for edge in 1..96 {
            world.record_one(edge * 900_000);
        }
        let options = patient(DAY, 900).probe(true);
        let mut collect = world.client.collect(options).expect("good options");
        let up_ms = world.now.monotonic_ms + 300_000;
        while let CollectStep::Drive(Drive { task, mut call, window }) = collect.next(world.now) {
            let is_down = world.now.monotonic_ms < up_ms;
            world.drive(&mut call, window, is_down.then_some(trouble));
            let settled = collect.settle(task, &mut call, world.now);
            settled.expect("the task is under way");
        }
        let ended = collect.finish().expect_err("closed windows");
        assert_eq!(ended.error.code(), Code::WindowsNotAdditive, "{trouble:?}");
    }
}

/// A call that was cancelled is no try.
#[test]
fn a_cancelled_try_is_given_again() {
    let mut world = World::empty();
    let mut collect = world.client.collect(patient(DAY, 900)).expect("good options");
    assert!(world.run_one(&mut collect, |_| Some(Trouble::Status(503))));
    let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(world.now) else {
        panic!("a try")
    };
    let wait = call.step(world.now);
    assert!(matches!(wait, Ok(Step::Wait { ms: 250..=500 })), "{wait:?}");
    assert!(matches!(collect.next(world.now), CollectStep::Idle));
    call.close();
    let settled = collect.settle(task, &mut call, world.now);
    assert_eq!(settled, Ok(Settled::GivenBack));
    assert!(collect.progress().waiting_ms.is_some());
    world.run(&mut collect, |_| None);
    assert!(collect.finish().is_ok());
}

/// Follows a day. Returns the world, the windows that were read, the errors with their times, and
/// the number of requests.
fn follow_day(
    down: impl Fn(u64) -> bool,
    patience_ms: Patience,
) -> (World, Vec<Window>, Vec<(u64, Code)>, u32) {
    let mut world = world(9);
    world.now = at(DAY + 7_200);
    let begin_ms = world.now.monotonic_ms;
    let options = FollowOptions::new(Metric::EventDelivery, new_year(), &DIMENSIONS, step("15m"))
        .end(instant(DAY))
        .patience_ms(patience_ms);
    let mut follow = world.client.follow(&options).expect("good options");
    let (mut read, mut errors, mut requests) = (Vec::new(), Vec::new(), 0);
    loop {
        match follow.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, window }) => {
                world.now = after(world.now, 100);
                let passed = world.now.monotonic_ms - begin_ms;
                requests += 1;
                let trouble = down(passed).then_some(Trouble::Status(503));
                let tries = world.requests();
                world.drive_with(&mut call, window, || trouble);
                requests += world.requests() - tries - 1;
                match follow.settle(task, &mut call, world.now) {
                    Ok(Some(revision)) => read.push(revision.window),
                    Ok(None) => assert!(follow.waiting_ms() > Some(0)),
                    Err(error) => errors.push((world.now.monotonic_ms - begin_ms, error.code())),
                }
            }
            FollowStep::Wait { ms } => world.now = after(world.now, ms.into()),
            FollowStep::Failed(error) => panic!("{error}"),
            FollowStep::Done => return (world, read, errors, requests),
        }
    }
}

#[test]
fn a_follow_that_catches_up_waits_for_the_service() {
    let down = |ms| (1_000..400_000).contains(&ms) || (900_000..903_000).contains(&ms);
    let (_, mut read, errors, requests) = follow_day(down, Patience::Endless);
    assert_eq!(errors, []);
    read.sort_unstable();
    let all: Vec<Window> = (0..96).map(|index| window(index * 900, index * 900 + 900)).collect();
    assert_eq!(read, all);
    assert!(requests < 96 + 20, "{requests} requests");
    // As it was: an error for each window and reading.
    let (_, _, errors, _) = follow_day(down, Patience::Milliseconds(0));
    assert!(errors.len() > 50, "{} errors", errors.len());
}

#[test]
fn a_follow_raises_when_its_patience_is_over_and_starts_anew() {
    let (_, read, errors, requests) =
        follow_day(|ms| ms < 1_000_000, Patience::Milliseconds(300_000));
    assert_eq!(read.len(), 96);
    assert!((3..=4).contains(&errors.len()), "{errors:?}");
    for (number, (ms, code)) in errors.iter().enumerate() {
        let expected = 300_000 * (number as u64 + 1);
        assert!((expected..expected + 90_000).contains(ms), "{errors:?}");
        assert_eq!(*code, Code::ServerError);
    }
    assert!(requests < 96 + 60, "{requests} requests");
}

/// It is told in the end, and the others are read.
#[test]
fn a_bad_window_of_a_follow_is_told_even_with_endless_patience() {
    let mut world = world(10);
    world.now = at(DAY + 7_200);
    let options = FollowOptions::new(Metric::EventDelivery, new_year(), &DIMENSIONS, step("15m"))
        .end(instant(DAY));
    assert_eq!(options.patience_ms, Patience::Endless);
    let mut follow = world.client.follow(&options).expect("good options");
    let bad = window(1_800, 2_700);
    let (mut read, mut failed) = (0, 0);
    let begin: Now = world.now;
    while failed == 0 || read < 95 {
        match follow.next(world.now) {
            FollowStep::Drive(Drive { task, mut call, window }) => {
                world.drive(&mut call, window, (window == bad).then_some(Trouble::Network));
                match follow.settle(task, &mut call, world.now) {
                    Ok(revision) => read += u32::from(revision.is_some()),
                    Err(error) => {
                        assert_eq!((window, error.code()), (bad, Code::NetworkFailed));
                        failed += 1;
                    }
                }
            }
            FollowStep::Wait { ms } => world.now = after(world.now, ms.into()),
            other => panic!("a window is missing: {other:?}"),
        }
    }
    assert_eq!(follow.provisional(), [bad]);
    assert!(world.now.monotonic_ms - begin.monotonic_ms < 60_000);
    assert!(follow.waiting_ms().is_none());
}
