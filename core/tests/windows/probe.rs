//! The probe for half-open windows, with a service that has them and with a service that doesn't.

use tallyfold::{
    Additivity, AdditivityVerdict, Code, CollectOptions, CollectStep, Deltas, Drive, Metric, Probe,
    ProbeOptions, Window,
};
use tallyfold_sandbox::{Outcome, SandboxOptions};

use super::world::{
    DIMENSIONS, Random, Trouble, World, assert_same_counts, collect_options, event, instant, window,
};
use crate::support::at;

const HOUR: u64 = 3_600;

fn world(closed_windows: bool) -> World {
    World::of(SandboxOptions::default().closed_windows(closed_windows))
}

fn probe(world: &World) -> Probe {
    let options = probe_options([0, HOUR, 2 * HOUR]);
    let probe = world.client.probe_additivity(&options);
    probe.expect("good arguments")
}

fn probe_options(edges: [u64; 3]) -> ProbeOptions {
    let [start, middle, end] = edges.map(instant);
    ProbeOptions::with_defaults(Metric::EventDelivery, start, middle, end, DIMENSIONS.to_vec())
}

/// Runs a probe. Calls `between` before each call.
fn run(world: &mut World, mut between: impl FnMut(&mut World, u64)) -> Additivity {
    let mut probe = probe(world);
    let mut calls = 0;
    while let CollectStep::Drive(Drive { task, mut call, window }) = probe.step() {
        between(world, calls);
        assert!(matches!(probe.step(), CollectStep::Idle));
        world.drive(&mut call, window, None);
        probe.settle(task, &mut call).expect("a table");
        calls += 1;
    }
    assert_eq!(calls, 3);
    probe.finish().expect("three tables")
}

#[test]
fn an_event_on_the_edge_shows_closed_windows() {
    for (closed, verdict, success) in
        [(false, AdditivityVerdict::Additive, 0), (true, AdditivityVerdict::DoubleCounted, 7)]
    {
        let mut world = world(closed);
        let random = &mut Random(4);
        for ms in [0, 10, HOUR * 1_000 - 1, HOUR * 1_000 + 1] {
            world.record(ms, random);
        }
        let values = ["a", "b", "integration 1", ""];
        let event = event(instant(HOUR), Outcome::Success, values, 7);
        world.sandbox.record(&event).expect("a good event");
        let found = run(&mut world, |_, _| {});
        assert_eq!(found.verdict, verdict);
        assert_same_counts(&found.whole, &world.truth(window(0, 2 * HOUR)));
        let deltas = Deltas { success, ..Deltas::default() };
        assert_eq!(found.difference.total_delta(), deltas);
        let whole = found.whole.coverage();
        assert_eq!(found.difference.before_coverage(), whole);
        assert_eq!(found.difference.after_coverage(), whole);
    }
}

/// Seeded traffic knows its edges to the millisecond.
#[test]
fn closed_windows_of_seeded_traffic_overlap_by_an_instant() {
    let mut doubles = 0;
    for closed_windows in [false, true] {
        let mut world = World::of(SandboxOptions::default().seed(7).closed_windows(closed_windows));
        let first = world.truth(window(0, 300)).totals().success;
        let ms = |ms: i64| {
            let instant = tallyfold::Timestamp::from_unix_ms(crate::support::NEW_YEAR_MS + ms);
            instant.expect("a year of four digits")
        };
        let each: u64 = (0..300)
            .map(|second| {
                let (start, end) = (second * 1_000 + 3, second * 1_000 + 1_003);
                let window = tallyfold::Window::new(ms(start), ms(end)).expect("a window");
                world.truth(window).totals().success
            })
            .sum();
        // The windows stand three milliseconds later; the traffic does not change by as much.
        let difference = each.abs_diff(first);
        doubles += if closed_windows { difference } else { 0 };
        assert!(closed_windows || difference < 3, "{difference}");
    }
    assert!(doubles > 3, "{doubles}");
}

#[test]
fn what_changes_between_the_readings_shows_too() {
    let mut world = world(false);
    let nothing = run(&mut world, |_, _| {});
    assert_eq!(nothing.verdict, AdditivityVerdict::Unknown);
    world.record(0, &mut Random(3));

    // Late events, which the whole has not.
    let late = run(&mut world, |world, calls| {
        if calls == 1 {
            world.record(5, &mut Random(4));
        }
    });
    assert_eq!(late.verdict, AdditivityVerdict::DoubleCounted);

    let fewer = run(&mut world, |world, calls| {
        if calls == 1 {
            let mut other = World::empty();
            other.record(0, &mut Random(3));
            world.sandbox = other.sandbox;
        }
    });
    assert_eq!(fewer.verdict, AdditivityVerdict::Missing);
    let mixed = run(&mut world, |world, calls| {
        if calls == 1 {
            world.sandbox = World::with_events(HOUR, 3).sandbox;
        }
    });
    assert_eq!(mixed.verdict, AdditivityVerdict::Mixed);
    let names = ["additive", "double_counted", "missing", "mixed", "unknown"];
    let found =
        [AdditivityVerdict::Additive, late.verdict, fewer.verdict, mixed.verdict, nothing.verdict];
    assert_eq!(found.map(AdditivityVerdict::as_str), names);
}

#[test]
fn a_probe_ends_with_the_error_of_its_call() {
    let mut world = world(false);
    let mut probe = probe(&world);
    let error = probe.finish().expect_err("it has not begun");
    assert_eq!(error.code(), Code::OutOfOrder);
    let CollectStep::Drive(Drive { task, mut call, .. }) = probe.step() else { panic!("a call") };
    call.close();
    assert_eq!(probe.settle(task, &mut call), Ok(()));
    let CollectStep::Drive(Drive { task, mut call, window }) = probe.step() else {
        panic!("the same call again")
    };
    world.drive(&mut call, window, Some(Trouble::Status(403)));
    let wrong = probe.settle(task + 1, &mut call).expect_err("another task");
    assert_eq!(wrong.code(), Code::OutOfOrder);
    let error = probe.settle(task, &mut call).expect_err("a refusal");
    assert_eq!(error.code(), Code::Forbidden);
    assert!(matches!(probe.step(), CollectStep::Done));
    assert_eq!(probe.finish(), Err(error));
}

#[test]
fn a_probe_wants_three_instants_in_order() {
    let world = world(false);
    let refused = |edges: [u64; 3]| {
        let probe = world.client.probe_additivity(&probe_options(edges));
        let error = probe.expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidWindow);
        error.argument_name().expect("an argument").to_owned()
    };
    assert_eq!(refused([0, 0, 9]), "middle");
    assert_eq!(refused([0, 9, 9]), "middle");
    assert_eq!(refused([9, 5, 9]), "start");
}

fn probing(seconds: u64) -> CollectOptions {
    collect_options(seconds, "1h").probe(true)
}

#[test]
fn a_collect_that_probes_reads_one_window_more() {
    let mut world = World::with_events(4 * HOUR, 100);
    let mut collect = world.client.collect(probing(4 * HOUR)).expect("good options");
    assert!(world.run_one(&mut collect, |_| None));
    let progress = collect.progress();
    assert_eq!((progress.planned, progress.done, progress.under_way), (4, 0, 2));
    world.run(&mut collect, |_| None);
    assert_eq!(world.requests(), 5);
    assert!(world.asked.values().all(|times| *times == 1));
    let progress = collect.progress();
    assert_eq!((progress.planned, progress.done, progress.under_way), (4, 4, 0));
    let table = collect.finish().expect("a whole table");
    assert_same_counts(&table, &world.truth(window(0, 4 * HOUR)));
    assert_eq!(collect.provisional(), []);

    // What is there is not probed, nor are windows that do not meet, or may still change.
    for (have, part, seconds, requests) in [
        (Some(world.truth(window(HOUR, 3 * HOUR))), None, 400 * 24 * HOUR, 2),
        (Some(world.truth(window(HOUR, 2 * HOUR))), None, 400 * 24 * HOUR, 4),
        (None, Some((0, 2)), 400 * 24 * HOUR, 2),
        (None, None, 2 * HOUR, 4),
    ] {
        let before = world.requests();
        world.now = at(seconds);
        let options = probing(4 * HOUR).have(have).part(part);
        let mut collect = world.client.collect(options).expect("good options");
        world.run(&mut collect, |_| None);
        assert!(collect.finish().is_ok());
        assert_eq!(world.requests() - before, requests);
    }
}

#[test]
fn a_collect_on_closed_windows_ends_before_it_counts_twice() {
    let mut world = world(true);
    let recorded = world.sandbox.record(&event(
        instant(HOUR),
        Outcome::Errors,
        ["a", "b", "integration 1", ""],
        7,
    ));
    recorded.expect("a good event");
    let mut collect = world.client.collect(probing(4 * HOUR)).expect("good options");
    world.run(&mut collect, |_| None);
    assert_eq!(world.requests(), 3);
    let error = collect.finish().expect_err("a doubtful table");
    assert_eq!(error.error.code(), Code::WindowsNotAdditive);
    assert_eq!(error.error.kind().as_str(), "response");
    assert_eq!(
        error.error.message(),
        "the counts of [2026-01-01T00:00:00Z, 2026-01-01T02:00:00Z) and of its two windows differ \
         (double_counted): the sum of the windows minus the whole is 0 success, 7 errors, 0 filtered"
    );
    assert_eq!((error.partial, error.gaps), (None, vec![window(0, 4 * HOUR)]));
    assert_eq!(collect.progress().planned, 4);

    let mut collect = world.client.collect(probing(4 * HOUR)).expect("good options");
    world.run(&mut collect, |_| Some(Trouble::Network));
    let error = collect.finish().expect_err("a probe without an answer");
    assert_eq!(error.error.code(), Code::NetworkFailed);
    assert_eq!(error.gaps, [window(0, 4 * HOUR)]);
}

#[test]
fn a_probe_whose_response_is_too_large_or_too_late_leaves_the_windows_to_the_collect() {
    for trouble in [Trouble::Timeout, Trouble::Status(504)] {
        let mut world = World::with_events(4 * HOUR, 100);
        let mut collect = world.client.collect(probing(4 * HOUR)).expect("good options");
        let is_probe = |window: Window| window.length_ms() > HOUR * 1_000;
        world.run(&mut collect, |window| is_probe(window).then_some(trouble));
        let table = collect.finish().expect("a whole table");
        assert_same_counts(&table, &world.truth(window(0, 4 * HOUR)));
    }
}
