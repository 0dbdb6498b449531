//! Long ranges: whole, in parts, with failures, by many workers.

use tallyfold::{
    Code, Collect, CollectError, CollectOptions, CollectStep, CountTable, Dimension, Drive, Frame,
    HostFailure, Limits, Machine, Patience, Progress, Settled, Step, Window,
};

use super::world::{
    DIMENSIONS, Random, Trouble, World, assert_same_counts, collect_options, instant, new_year,
    step, window,
};
use crate::support::{after, at, client, options};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

fn start(world: &World, options: CollectOptions) -> Collect {
    world.client.collect(options).expect("good options")
}

/// With these options, a window fails once its own retries are used up.
fn impatient(options: CollectOptions) -> CollectOptions {
    options.patience_ms(Patience::Milliseconds(0))
}

fn ended(collect: &Collect) -> CollectError {
    *collect.finish().expect_err("windows are missing")
}

fn progress(collect: &Collect) -> [u32; 4] {
    let Progress { planned, done, failed, under_way, .. } = collect.progress();
    [planned, done, failed, under_way]
}

#[test]
fn a_range_is_the_sum_of_its_windows_each_read_once() {
    let mut world = World::with_events(DAY, 800);
    let options = collect_options(DAY - 7, "15m").start(instant(100));
    let mut collect = start(&world, options);
    assert_eq!(progress(&collect), [96, 0, 0, 0]);
    world.run(&mut collect, |_| None);
    assert_eq!(progress(&collect), [96, 96, 0, 0]);
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(100, DAY - 7)));
    assert!(table.windows().iter().copied().eq(collect.plan().windows()));
    assert!(world.asked.values().all(|times| *times == 1));
    assert!(table.len() == 15 && table.totals().success > 1_000);
}

#[test]
fn more_dimensions_in_the_requests_give_the_same_table() {
    let read = |by: Option<&[Dimension]>| {
        let mut world = World::with_events(HOUR, 500);
        let mut collect = start(&world, collect_options(HOUR, "15m"));
        if let Some(by) = by {
            collect.request_by(by).expect("more dimensions");
        }
        world.run(&mut collect, |_| None);
        collect.finish().expect("a table").to_json()
    };
    let all = [&DIMENSIONS[..], &[Dimension::WriteKey]].concat();
    assert_eq!(read(Some(&all)), read(None));
}

/// Hundreds of millions of windows are a mistake in a range, or in the length of its windows.
#[test]
fn the_end_of_a_collect_costs_what_was_read_and_not_what_was_planned() {
    let mut world = World::empty();
    let years = 20 * 365 * DAY;
    let options = collect_options(years, "1s").finest(step("1s"));
    let mut collect = start(&world, options);
    assert!(world.run_one(&mut collect, |_| None));
    assert_eq!(ended(&collect).gaps, [window(1, years)]);
}

#[test]
fn a_step_says_whether_a_worker_may_leave() {
    let mut world = World::empty();
    let mut collect = start(&world, collect_options(2 * HOUR, "1h"));
    let steps: [CollectStep; 3] = std::array::from_fn(|_| collect.next(world.now));
    let [
        CollectStep::Drive(Drive { task, mut call, .. }),
        CollectStep::Drive(Drive { task: other_task, call: mut other_call, window: other_window }),
        CollectStep::Idle,
    ] = steps
    else {
        panic!("two calls, and nothing for a third worker")
    };
    assert_eq!(progress(&collect), [2, 0, 0, 2]);
    world.drive(&mut other_call, other_window, None);
    let settled = collect.settle(other_task, &mut other_call, world.now);
    assert_eq!(settled, Ok(Settled::Kept { provisional: false }));
    assert!(matches!(collect.next(world.now), CollectStep::Idle));
    for task in [other_task, 77, 0] {
        let error = collect.settle(task, &mut other_call, world.now);
        assert_eq!(error.map_err(|error| error.code()), Err(Code::OutOfOrder));
    }
    // Nobody drove the other one.
    assert_eq!(collect.settle(task, &mut call, world.now), Ok(Settled::GivenBack));
    assert_eq!(progress(&collect), [2, 1, 0, 0]);
    world.run(&mut collect, |_| None);
    assert!(matches!(collect.next(world.now), CollectStep::Done));
    assert!(collect.finish().is_ok());
}

#[test]
fn a_cancelled_collect_gives_what_it_has_and_can_go_on() {
    let mut world = World::with_events(4 * HOUR, 100);
    let mut collect = start(&world, collect_options(4 * HOUR, "1h"));
    let error = ended(&collect);
    assert_eq!((error.error.code(), error.partial), (Code::OutOfOrder, None));
    assert_eq!(error.gaps, [window(0, 4 * HOUR)]);
    assert!(world.run_one(&mut collect, |_| None));
    let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(world.now) else {
        panic!("a call")
    };
    assert!(call.step(world.now).is_ok());
    call.close();
    let error = ended(&collect);
    assert_eq!(error.gaps, [window(HOUR, 4 * HOUR)]);
    let partial = error.partial.expect("one window");
    assert_same_counts(&partial, &world.truth(window(0, HOUR)));
    assert_eq!(collect.settle(task, &mut call, world.now), Ok(Settled::GivenBack));
    world.run(&mut collect, |_| None);
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, 4 * HOUR)));
}

/// Calls that are mixed up by the host count for nobody.
#[test]
fn a_call_of_another_window_is_not_believed() {
    let mut world = World::with_events(2 * HOUR, 50);
    let mut collect = start(&world, collect_options(2 * HOUR, "1h"));
    let mut calls: Vec<_> = (0..2)
        .map(|_| match collect.next(world.now) {
            CollectStep::Drive(Drive { task, call, window }) => (task, call, window),
            other => panic!("want a call, not {other:?}"),
        })
        .collect();
    for (_, call, window) in &mut calls {
        world.drive(call, *window, None);
    }
    let tasks = [calls[1].0, calls[0].0];
    for ((_, call, _), task) in calls.iter_mut().zip(tasks) {
        assert_eq!(collect.settle(task, call, world.now), Ok(Settled::GivenBack));
    }
    world.run(&mut collect, |_| None);
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, 2 * HOUR)));
}

#[test]
fn one_failing_window_leaves_the_others_and_only_its_gap_is_read_again() {
    let mut world = World::with_events(DAY, 500);
    let bad = [window(3 * HOUR, 4 * HOUR), window(9 * HOUR, 10 * HOUR)];
    let mut collect = start(&world, collect_options(DAY, "1h"));
    world.run(&mut collect, |window| {
        let status = if window == bad[0] { 500 } else { 418 };
        bad.contains(&window).then_some(Trouble::Status(status))
    });
    assert_eq!(progress(&collect), [24, 22, 2, 0]);
    let error = ended(&collect);
    assert_eq!(error.error.code(), Code::ServerError);
    assert_eq!(error.gaps, bad);
    let failed: Vec<_> =
        error.failures.iter().map(|(window, error)| (*window, error.code())).collect();
    let codes = [Code::ServerError, Code::UnexpectedStatus];
    assert!(failed.into_iter().eq(bad.into_iter().zip(codes)));
    let told = error.to_string();
    assert!(told.contains("2 of 24 windows failed; first: ["), "{told}");
    let partial = error.partial.expect("the other windows");
    assert_eq!(partial.gaps(Some(window(0, DAY))), bad);

    let before = world.requests();
    let options = collect_options(DAY, "1h").have(partial);
    let mut again = start(&world, options);
    assert_eq!(progress(&again), [24, 22, 0, 0]);
    world.run(&mut again, |_| None);
    assert_eq!(world.requests() - before, 2);
    let table = again.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, DAY)));

    let mut whole = start(&world, collect_options(DAY, "1h"));
    world.run(&mut whole, |_| None);
    assert_eq!(whole.finish().as_ref(), Ok(&table));
}

#[test]
fn what_is_there_may_be_cut_otherwise_than_the_plan() {
    let mut world = World::with_events(6 * HOUR, 300);
    let parts = [
        world.truth(window(600, 1_200)),
        world.truth(window(1_200, HOUR)),
        world.truth(window(2 * HOUR, 4 * HOUR)),
        world.truth(window(8 * HOUR, 9 * HOUR)),
    ];
    let have = CountTable::merge_all(&parts).expect("different times");
    let options = collect_options(6 * HOUR, "1h").have(have);
    let mut collect = start(&world, options);
    // Four hours, of which one is a third there; two readings of it, and one of two hours.
    assert_eq!(progress(&collect), [7, 3, 0, 0]);
    world.run(&mut collect, |_| None);
    assert_eq!(progress(&collect), [7, 7, 0, 0]);
    let asked: Vec<Window> = world.asked.keys().copied().collect();
    let hours = [(0, 600), (HOUR, 2 * HOUR), (4 * HOUR, 5 * HOUR), (5 * HOUR, 6 * HOUR)];
    assert_eq!(asked, hours.map(|(start, end)| window(start, end)));
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, 6 * HOUR)));
}

#[test]
fn what_is_there_must_count_the_same() {
    let mut world = World::with_events(2 * HOUR, 50);
    let truth = world.truth(window(0, HOUR));
    let refused = |have: CountTable, range: CollectOptions| {
        let options = range.have(have);
        let error = world.client.collect(options).expect_err("a refusal");
        assert_eq!(error.argument_name(), Some("have"));
        error.code()
    };
    let range = || collect_options(2 * HOUR, "1h");
    let filtered = truth.filter(&[("reason".to_owned(), vec!["reason 1".to_owned()])]);
    let regrouped = truth.group_by(&["reason"]);
    for other in [filtered, regrouped] {
        let code = refused(other.expect("known dimensions"), range());
        assert_eq!(code, Code::IncompatibleTables);
    }
    let mut ingestion = range();
    ingestion.metric = tallyfold::Metric::EventIngestion;
    ingestion.dimensions = vec![Dimension::Integration];
    assert_eq!(refused(truth.clone(), ingestion), Code::IncompatibleTables);
}

/// Counts can't be cut, so a window that lies only partly in the plan is read as if it were not there.
#[test]
fn what_is_there_may_reach_beyond_the_range() {
    let mut world = World::with_events(4 * HOUR, 90);
    let parts =
        [(0, 2), (2, 3), (3, 4)].map(|(from, to)| world.truth(window(from * HOUR, to * HOUR)));
    let have = CountTable::merge_all(&parts).expect("different times");
    let options = |from: u64, to: u64, part| {
        collect_options(4 * HOUR, "1h")
            .have(have.clone())
            .start(instant(from * HOUR))
            .end(instant(to * HOUR))
            .part(part)
    };
    for (options, given, whole) in [
        (options(1, 4, None), 2, window(HOUR, 4 * HOUR)),
        (options(2, 6, None), 2, window(2 * HOUR, 6 * HOUR)),
        (options(0, 4, Some((2, 4))), 1, window(2 * HOUR, 3 * HOUR)),
        (options(0, 4, Some((0, 4))), 0, window(0, HOUR)),
    ] {
        let mut collect = start(&world, options);
        assert_eq!(progress(&collect)[1], given);
        world.run(&mut collect, |_| None);
        let table = collect.finish().expect("a whole table");
        assert_same_counts(&table, &world.truth(whole));
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    let world = World::empty();
    let refused = |change: fn(&mut CollectOptions)| {
        let mut options = collect_options(HOUR, "15m");
        change(&mut options);
        let error = world.client.collect(options).expect_err("a refusal");
        (error.code(), error.argument_name().expect("an argument").to_owned())
    };
    assert_eq!(
        refused(|options| options.end = new_year()),
        (Code::InvalidWindow, "start".to_owned())
    );
    assert_eq!(
        refused(|options| options.dimensions.clear()),
        (Code::NoDimensions, "dimensions".to_owned())
    );
    assert_eq!(
        refused(|options| options.group_by = Some(vec![Dimension::WriteKey])),
        (Code::UnknownDimension, "group_by".to_owned())
    );
    for part in [(0, 0), (4, 4), (4, 5)] {
        let mut options = collect_options(HOUR, "15m");
        options.part = Some(part);
        let error = world.client.collect(options).expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.argument_name(), Some("part"));
    }
    let other = Machine::new(options().cluster_endpoint(None));
    let collect = other.expect("one API").collect(collect_options(HOUR, "15m"));
    assert_eq!(collect.expect_err("no API").code(), Code::MissingArgument);
}

/// Bodies above the limit, and a service that takes too long for more than some minutes.
#[test]
fn windows_that_are_too_much_are_halved_until_they_fit() {
    let mut world = World::with_events(2 * HOUR, 150);
    let limits = Limits::default().body_bytes(1_000);
    world.client = Machine::new(options().limits(limits)).expect("good options");
    let mut collect = start(&world, collect_options(2 * HOUR, "1h"));
    world.run(&mut collect, |_| None);
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, 2 * HOUR)));
    let windows = table.windows();
    assert!(windows.len() > 4, "{windows:?}");
    let [planned, done, ..] = progress(&collect);
    assert_eq!([planned, done], [windows.len() as u32; 2]);
    // A tree: each window that was too much was asked for once, and so were its halves.
    assert!(world.asked.values().all(|times| *times == 1));
    assert_eq!(world.requests() as usize, 2 * windows.len() - 2);

    for trouble in [Trouble::Timeout, Trouble::Status(504), Trouble::Status(408)] {
        let mut world = World::with_events(2 * HOUR, 100);
        let mut collect = start(&world, collect_options(2 * HOUR, "1h"));
        let mut halved = Vec::new();
        world.run(&mut collect, |window| {
            let seconds = (window.end().unix_ms() - window.start().unix_ms()) / 1_000;
            halved.push(seconds);
            (seconds > 900).then_some(trouble)
        });
        // The halves come at once, the earlier first.
        assert_eq!(halved[..7], [3_600, 1_800, 900, 900, 1_800, 900, 900]);
        let table = collect.finish().expect("a whole table");
        assert_eq!(table.windows().len(), 8);
        assert_same_counts(&table, &world.truth(window(0, 2 * HOUR)));
    }
}

#[test]
fn halving_ends_at_the_finest_step_and_then_the_window_has_failed() {
    let mut world = World::with_events(HOUR, 100);
    let options = collect_options(HOUR, "15m").finest(step("5m"));
    let bad = window(900, 1_200);
    let mut collect = start(&world, options);
    world.run(&mut collect, |window| window.contains(bad).then_some(Trouble::Timeout));
    let error = ended(&collect);
    assert_eq!(error.gaps, [bad]);
    assert_eq!(error.failures.len(), 1);
    assert_eq!((error.failures[0].0, error.error.code()), (bad, Code::TimedOut));
    assert_eq!(progress(&collect), [5, 4, 1, 0]);
    let asked: Vec<Window> = world.asked.keys().copied().collect();
    let edges =
        [(0, 900), (900, 1_200), (900, 1_800), (1_200, 1_800), (1_800, 2_700), (2_700, 3_600)];
    assert_eq!(asked, edges.map(|(start, end)| window(start, end)));
}

/// Drives a collect of a service that accepts requests and never responds. Returns how many seconds
/// that took.
fn run_in_silence(world: &mut World, collect: &mut Collect) -> u64 {
    let begin = world.now.monotonic_ms;
    while let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(world.now) {
        loop {
            match call.step(world.now) {
                Ok(Step::Wait { ms }) => world.now = after(world.now, ms.into()),
                Ok(Step::Send(_)) => {
                    world.now = after(world.now, 30_000);
                    // The call returns its error again when it is settled.
                    drop(call.failed(HostFailure::Timeout, ""));
                }
                Ok(other) => panic!("one call alone is never told {other:?}"),
                Err(_) => break,
            }
        }
        let settled = collect.settle(task, &mut call, world.now);
        assert!(!matches!(settled, Ok(Settled::Halved)), "{settled:?}");
    }
    (world.now.monotonic_ms - begin) / 1_000
}

#[test]
fn a_service_that_never_answers_halves_no_window_and_is_left_in_time() {
    let mut world = World::empty();
    world.client = client();
    drop(world.truth(window(0, 900)));
    let mut collect = start(&world, impatient(collect_options(HOUR, "15m")));
    let seconds = run_in_silence(&mut world, &mut collect);
    assert!((240..250).contains(&seconds), "four windows twice: {seconds}");
    let error = ended(&collect);
    assert_eq!((error.error.code(), error.failures.len()), (Code::TimedOut, 4));
    assert!(error.to_string().contains("no response began in that time"), "{error}");

    let mut collect = start(&world, collect_options(HOUR, "15m"));
    let seconds = run_in_silence(&mut world, &mut collect);
    assert!((900..1_050).contains(&seconds), "its patience: {seconds}");
    let text = ended(&collect).to_string();
    assert!(
        text.contains("no response began in that time") && text.contains("has been down"),
        "{text}"
    );
}

#[test]
fn a_window_alone_that_gets_no_answer_is_halved() {
    let mut world = World::with_events(2 * HOUR, 100);
    let mut collect = start(&world, collect_options(2 * HOUR, "30m"));
    let slow = window(1_800, 3_600);
    world.run(&mut collect, |window| (window == slow).then_some(Trouble::Silence));
    let table = collect.finish().expect("a whole table");
    assert_eq!(table.windows().len(), 5);
    assert_same_counts(&table, &world.truth(window(0, 2 * HOUR)));
}

#[test]
fn a_slow_token_endpoint_halves_no_window() {
    for status in [504, 408] {
        let mut world = World::with_events(2 * HOUR, 100);
        let mut collect = start(&world, impatient(collect_options(2 * HOUR, "1h")));
        while let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(world.now) {
            loop {
                match call.step(world.now) {
                    Ok(Step::Wait { ms }) => world.now = after(world.now, ms.into()),
                    Ok(Step::Send(request)) => {
                        assert!(request.url().ends_with("/oauth/token"));
                        // The call says its error again when it is settled.
                        drop(call.head(status, &[]));
                    }
                    Ok(other) => panic!("one call alone is never told {other:?}"),
                    Err(_) => break,
                }
            }
            let settled = collect.settle(task, &mut call, world.now);
            assert!(matches!(settled, Ok(Settled::Failed(_))), "{settled:?}");
        }
        assert_eq!(progress(&collect), [2, 0, 2, 0]);
    }
}

#[test]
fn a_refusal_ends_the_collect_at_once() {
    for (trouble, code) in [
        (Trouble::Status(403), Code::Forbidden),
        (Trouble::Status(302), Code::Redirected),
        (Trouble::Status(401), Code::TokenRejected),
        (Trouble::Later, Code::RetryLater),
    ] {
        let mut world = World::with_events(DAY, 200);
        let mut collect = start(&world, impatient(collect_options(DAY, "1h")));
        let mut windows = 0;
        world.run(&mut collect, |_| {
            windows += 1;
            match windows {
                2 => Some(Trouble::Status(500)),
                4 => Some(trouble),
                _ => None,
            }
        });
        assert_eq!(windows, 4);
        assert_eq!(progress(&collect), [24, 2, 2, 0]);
        let error = ended(&collect);
        assert_eq!(error.error.code(), code, "what ended it outranks what failed before");
        assert_eq!(error.gaps, [window(HOUR, 2 * HOUR), window(3 * HOUR, DAY)]);
        let told = error.to_string();
        assert!(told.starts_with(code.as_str()), "{told}");
        assert!(told.contains("2 of 24 windows failed, and then: "), "{told}");
        assert!(told.contains("; `partial` has the 2 that were read"), "{told}");
    }
}

#[test]
fn eight_failures_in_a_row_end_the_collect_and_seven_do_not() {
    let mut world = World::with_events(DAY, 200);
    let mut collect = start(&world, impatient(collect_options(DAY, "1h")));
    let mut windows = 0;
    world.run(&mut collect, |_| {
        windows += 1;
        (windows != 8).then_some(Trouble::Status(500))
    });
    assert_eq!(windows, 16);
    assert_eq!(progress(&collect), [24, 1, 15, 0]);
    let error = ended(&collect);
    assert_eq!(error.failures.len(), 15);
    let told = error.to_string();
    assert!(told.starts_with("server_error: 15 of 24 windows failed; first: ["));
    assert!(told.contains(": the service failed; `partial` has the 1 that were read"), "{told}");
}

/// What was under way when the collect ended still counts, and brings it not back to life.
#[test]
fn calls_that_outlive_the_end_are_kept() {
    let mut world = World::with_events(DAY, 200);
    let mut collect = start(&world, impatient(collect_options(DAY, "1h")));
    let CollectStep::Drive(Drive { task, mut call, window: first }) = collect.next(world.now)
    else {
        panic!("a call")
    };
    for _ in 0..8 {
        assert!(world.run_one(&mut collect, |_| Some(Trouble::Network)));
    }
    assert!(matches!(collect.next(world.now), CollectStep::Idle));
    world.drive(&mut call, first, None);
    let settled = collect.settle(task, &mut call, world.now);
    assert_eq!(settled, Ok(Settled::Kept { provisional: false }));
    assert!(matches!(collect.next(world.now), CollectStep::Done));
    assert_eq!(progress(&collect), [24, 1, 8, 0]);
}

/// Some workers, whose calls end in any order, some of them cancelled on the way.
#[test]
fn many_workers_bring_the_table_of_one() {
    let mut world = World::with_events(DAY, 600);
    let mut alone = start(&world, collect_options(DAY, "15m"));
    world.run(&mut alone, |_| None);
    let alone = alone.finish().expect("a whole table");
    for seed in 0..10 {
        let mut random = Random(seed);
        let mut collect = start(&world, collect_options(DAY, "15m"));
        let mut under_way = Vec::new();
        loop {
            if under_way.len() < 8 && random.below(2) == 0 {
                match collect.next(world.now) {
                    CollectStep::Drive(Drive { task, call, window }) => {
                        under_way.push((task, call, window))
                    }
                    CollectStep::Idle => {}
                    CollectStep::Done => break,
                }
            } else if !under_way.is_empty() {
                let next = random.below(under_way.len() as u64) as usize;
                let (task, mut call, window) = under_way.swap_remove(next);
                match random.below(10) {
                    0 => call.close(),
                    1 if window.end().unix_ms() - window.start().unix_ms() > 60_000 => {
                        world.drive(&mut call, window, Some(Trouble::Timeout));
                    }
                    _ => world.drive(&mut call, window, None),
                }
                let settled = collect.settle(task, &mut call, world.now);
                settled.expect("the task is under way");
            }
            let [planned, done, failed, running] = progress(&collect);
            assert_eq!(running as usize, under_way.len());
            assert!(planned >= 96 && done + running <= planned && failed == 0);
        }
        let table = collect.finish().expect("a whole table");
        assert_same_counts(&table, &alone);
    }
}

#[test]
fn parts_are_collected_apart_and_merge_to_the_whole() {
    let mut world = World::with_events(DAY, 400);
    let mut whole = start(&world, collect_options(DAY, "1h"));
    world.run(&mut whole, |_| None);
    let whole = whole.finish().expect("a whole table");
    let mut tables: Vec<CountTable> = (0..5)
        .map(|index| {
            let options = collect_options(DAY, "1h")
                .part((index, 5))
                .have((index == 2).then(|| world.truth(window(DAY, DAY + 60))));
            let mut part = start(&world, options);
            world.run(&mut part, |_| None);
            let table = part.finish().expect("a whole part");
            assert!(table.windows().iter().copied().eq(part.plan().windows()));
            let bytes = table.to_json();
            CountTable::from_json(bytes.as_bytes()).expect("what it wrote")
        })
        .collect();
    assert!(world.asked.iter().all(|(window, times)| {
        // The first run asked for each once too.
        *times == 2 || !whole.coverage()[0].contains(*window)
    }));
    for turn in 0..5 {
        tables.rotate_left(turn);
        let merged = CountTable::merge_all(&tables).expect("different times");
        assert_eq!(merged.to_json(), whole.to_json());
        assert_eq!(merged, whole);
    }
}

#[test]
fn counts_that_were_read_early_are_provisional() {
    let mut world = World::with_events(4 * HOUR, 100);
    let settle_ms = 2 * HOUR * 1_000;
    let options = || collect_options(4 * HOUR, "1h").settle_ms(settle_ms);
    let mut collect = start(&world, options());
    world.now = at(4 * HOUR);
    world.run(&mut collect, |_| None);
    assert_eq!(collect.provisional(), [window(2 * HOUR, 3 * HOUR), window(3 * HOUR, 4 * HOUR)]);
    assert!(collect.finish().is_ok());

    // Asked for a moment too early, or settled by a clock that was set back.
    let edge_ms = crate::support::NEW_YEAR_MS + 3 * HOUR as i64 * 1_000;
    for (asked_ms, settled_ms, provisional) in [(0, 0, false), (-1, 0, true), (0, -1, true)] {
        let mut collect = start(&world, options());
        world.now.unix_ms = edge_ms + asked_ms;
        let CollectStep::Drive(Drive { task, mut call, window }) = collect.next(world.now) else {
            panic!("a call")
        };
        world.drive(&mut call, window, None);
        world.now.unix_ms = edge_ms + settled_ms;
        let settled = collect.settle(task, &mut call, world.now);
        assert_eq!(settled, Ok(Settled::Kept { provisional }));
    }
}

#[test]
fn fewer_dimensions_may_be_kept_than_are_asked_for() {
    let mut world = World::with_events(DAY, 300);
    for kept in [&[Dimension::Reason][..], &[]] {
        let options = collect_options(DAY, "6h").group_by(kept.to_vec());
        let mut collect = start(&world, options);
        world.run(&mut collect, |_| None);
        let table = collect.finish().expect("a whole table");
        let truth = world.truth(window(0, DAY)).group_by(kept);
        assert_same_counts(&table, &truth.expect("known dimensions"));
    }
}

/// 2,880 windows of a month, one call of twenty fails in one of many ways: each round reads what the
/// rounds before it did not get, and the last one has it all.
#[test]
fn a_month_with_faults_is_exact() {
    const MONTH: u64 = 30 * DAY;
    let mut world = World::with_events(MONTH, 3_000);
    let mut random = Random(30);
    let mut have = None;
    let mut rounds = 0;
    let table = loop {
        rounds += 1;
        let options = collect_options(MONTH, "15m").have(have.take());
        let mut collect = start(&world, options);
        world.run(&mut collect, |_| fault(&mut random));
        match collect.finish() {
            Ok(table) => break table,
            Err(error) => have = error.partial,
        }
        assert!(rounds < 10);
    };
    assert_same_counts(&table, &world.truth(window(0, MONTH)));
    assert!(rounds > 1 && world.requests() > 2_900);
}

/// The same in one go, as calls try again what may pass.
#[test]
fn a_month_with_faults_and_retries_is_exact() {
    const MONTH: u64 = 30 * DAY;
    let mut world = World::with_events(MONTH, 3_000);
    world.client = client();
    let mut random = Random(31);
    let mut collect = start(&world, collect_options(MONTH, "15m"));
    while let CollectStep::Drive(Drive { task, mut call, window }) = collect.next(world.now) {
        world.drive_with(&mut call, window, || {
            fault(&mut random).filter(|trouble| !matches!(trouble, Trouble::Cut))
        });
        let settled = collect.settle(task, &mut call, world.now);
        assert_eq!(settled, Ok(Settled::Kept { provisional: false }));
    }
    let table = collect.finish().expect("a whole table");
    assert_eq!(table.windows().len(), 2_880);
    assert_same_counts(&table, &world.truth(window(0, MONTH)));
    let requests = world.requests();
    assert!((2_960..3_060).contains(&requests), "{requests} requests");
}

/// One call in twenty fails, in one of many ways.
pub(crate) fn fault(random: &mut Random) -> Option<Trouble> {
    let faults = [
        Trouble::Status(500),
        Trouble::Status(502),
        Trouble::Status(429),
        Trouble::Status(503),
        Trouble::Status(504),
        Trouble::Timeout,
        Trouble::Network,
        Trouble::Cut,
    ];
    let fault = faults[random.below(faults.len() as u64) as usize];
    (random.below(20) == 0).then_some(fault)
}

/// Windows that had not ended when they were read are gaps, although their counts are there.
#[test]
fn what_lies_in_the_future_is_a_gap() {
    let mut world = World::with_events(4 * HOUR, 100);
    world.now = at(HOUR + 1_800);
    let mut collect = start(&world, collect_options(4 * HOUR, "1h"));
    world.run(&mut collect, |_| None);
    let table = collect.finish().expect("all was read");
    let saved = CountTable::from_json(table.to_json().as_bytes()).expect("what was saved");
    assert_eq!(saved, table);
    for table in [table, saved] {
        assert_eq!(table.gaps(None), [window(HOUR, 4 * HOUR)]);
        let series = table.by_window(None).expect("a series");
        let flags = |of: &tallyfold::SeriesWindow| (of.complete, of.provisional, of.settled());
        let flags: Vec<_> = series.windows().iter().map(flags).collect();
        let open = (false, true, false);
        assert_eq!(flags, [(true, true, false), open, open, open]);
        let day = table.by_window(Some(step("1d"))).expect("a series");
        assert!(!day.windows()[0].complete);
    }
}

#[test]
fn a_response_without_a_date_settles_by_the_date_of_an_earlier_one() {
    let mut world = World::with_events(HOUR, 100);
    world.now = at(2 * HOUR);
    // The wall clock is two hours ahead.
    let service_ms = world.now.unix_ms - 2 * 3_600_000;
    let mut collect = world.client.collect(collect_options(HOUR, "15m")).expect("good options");
    let mut responses = 0;
    while let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(world.now) {
        responses += 1;
        let date = (responses < 4).then_some(service_ms);
        super::follow::answer_at(&mut world, &mut call, date);
        let settled = collect.settle(task, &mut call, world.now);
        assert!(matches!(settled, Ok(Settled::Kept { provisional: true })), "{settled:?}");
    }
    assert_eq!(responses, 4);
}
