//! What a collect stores, and how another collect resumes from it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tallyfold::keeper::segment_name;
use tallyfold::{
    Code, Collect, CollectOptions, CollectStep, CountTable, Dimension, Drive, Error, Frame, Keep,
    Machine, Metric, Spelling, Timestamp, Window,
};
use tallyfold_sandbox::{Fault, FaultEffect, Outcome, SandboxOptions};

use super::collect::fault;
use super::world::{
    DIMENSIONS, Random, Trouble, World, assert_same_counts, collect_options, event, instant, step,
    window,
};
use crate::support::{ADDRESS, at, options};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// A folder of files, as a caller would store them.
pub(crate) type Files = BTreeMap<String, String>;

/// Stores the new segments.
pub(crate) fn save(collect: &mut Collect, files: &mut Files) {
    while let Some(segment) = collect.unsaved() {
        files.insert(segment.name, segment.json);
    }
}

pub(crate) fn load(collect: &mut Collect, files: &Files) -> Result<(), Error> {
    for name in (0..).map(segment_name) {
        let Some(json) = files.get(&name) else { break };
        collect.load(&name, json.as_bytes())?;
    }
    Ok(())
}

pub(crate) fn resumed(world: &World, options: CollectOptions, files: &Files) -> Collect {
    let mut collect = world.client.collect(options).expect("good options");
    load(&mut collect, files).expect("what was stored");
    collect
}

/// The stored windows that are not provisional. Fails if a window is stored twice.
fn stored(files: &Files) -> BTreeSet<Window> {
    let mut windows = BTreeSet::new();
    for json in files.values() {
        let segment: Value = serde_json::from_str(json).expect("JSON");
        let edge = |window: &Value, name| window[name].as_str().expect("a timestamp").to_owned();
        let table = segment["table"]["windows"].as_array().expect("a list");
        for window in table {
            if window["provisional"].is_null() {
                let window = Window::parse(&edge(window, "start"), &edge(window, "end"));
                let is_new = windows.insert(window.expect("a window"));
                assert!(is_new, "a window is stored twice");
            }
        }
    }
    windows
}

/// The message of an error of a segment, without the segment's name and the advice.
fn without_advice(error: &Error) -> String {
    let message = error.message();
    let name = message.find(" (in segment-0000").expect("the segment's name");
    message[..name].to_owned()
}

fn finished(collect: &Collect) -> CountTable {
    collect.finish().expect("a whole table")
}

/// 2,880 windows with faults; twenty times the process is killed, each time with some calls under
/// way, and sometimes between settling and storing.
#[test]
fn a_month_killed_twenty_times_ends_with_the_table_of_an_unbroken_run() {
    const MONTH: u64 = 30 * DAY;
    let mut world = World::with_events(MONTH, 3_000);
    let options = || collect_options(MONTH, "15m");
    let mut unbroken = resumed(&world, options(), &Files::new());
    world.run(&mut unbroken, |_| None);
    let unbroken = finished(&unbroken);
    world.asked.clear();

    let mut random = Random(20);
    let mut files = Files::new();
    let mut kills = 0;
    let table = loop {
        let before = stored(&files);
        let asked_before = world.asked.clone();
        let mut collect = resumed(&world, options(), &files);
        assert_eq!(collect.progress().done, before.len() as u32);
        let life = if kills < 20 { random.below(260) } else { u64::MAX };
        let mut lived = 0;
        let ended = loop {
            if lived >= life {
                // The calls that are under way die too.
                let under_way: Vec<_> = (0..3).map(|_| collect.next(world.now)).collect();
                assert_eq!(under_way.len(), 3);
                break false;
            }
            lived += 1;
            // No window is halved, so that the tables can be equal.
            let trouble = fault(&mut random)
                .filter(|trouble| !matches!(trouble, Trouble::Timeout | Trouble::Status(504)));
            if !world.run_one(&mut collect, |_| trouble) {
                break true;
            }
            let killed_before_storing = lived == life && random.below(2) == 0;
            if !killed_before_storing {
                save(&mut collect, &mut files);
            }
        };
        for window in &before {
            let times = world.asked.get(window);
            assert_eq!(times, asked_before.get(window), "{window:?} was stored");
        }
        match collect.finish() {
            Ok(table) if ended => break table,
            _ => kills += u32::from(!ended),
        }
    };
    assert_eq!(kills, 20);
    assert_eq!(table.to_json(), unbroken.to_json());
    assert_eq!(table, unbroken);
    assert_same_counts(&table, &world.truth(window(0, MONTH)));
    // Only what was lost with a process, or had failed, was asked for again.
    assert!(world.requests() < 2_880 * 106 / 100 + 20, "{}", world.requests());
}

#[test]
fn a_segment_grows_to_its_size_and_then_stays_as_it_is() {
    let options_of_sandbox = SandboxOptions::default().seed(7);
    let mut world = World::of(options_of_sandbox);
    let options =
        || collect_options(HOUR, "1m").dimensions(vec![Dimension::EventName, Dimension::WriteKey]);
    let mut collect = resumed(&world, options(), &Files::new());
    let mut files = Files::new();
    let mut largest_window = 0;
    while world.run_one(&mut collect, |_| None) {
        let segment = collect.unsaved().expect("a new window");
        assert_eq!(collect.unsaved(), None, "it was given");
        // Only the last one is ever written again.
        assert!(files.keys().all(|name| *name <= segment.name));
        let before = files.get(&segment.name).map_or(0, String::len);
        largest_window = largest_window.max(segment.json.len() - before);
        assert!(segment.json.len() < 128 * 1_024 + 2 * largest_window);
        files.insert(segment.name, segment.json);
    }
    assert!(files.len() > 2);
    let full = files.values().filter(|json| json.len() > 128 * 1_024);
    assert_eq!(full.count(), files.len() - 1);
    let table = finished(&collect);
    let before = world.requests();
    let again = resumed(&world, options(), &files);
    assert_eq!(finished(&again), table);
    assert_eq!(world.requests(), before);
}

/// A host may store less often; then there are several segments at once.
#[test]
fn what_was_not_asked_for_in_time_is_not_lost() {
    let options_of_sandbox = SandboxOptions::default().seed(7);
    let mut world = World::of(options_of_sandbox);
    let options =
        || collect_options(HOUR, "1m").dimensions(vec![Dimension::EventName, Dimension::WriteKey]);
    let mut collect = resumed(&world, options(), &Files::new());
    world.run(&mut collect, |_| None);
    let mut files = Files::new();
    save(&mut collect, &mut files);
    assert!(files.len() > 2);
    assert_eq!(finished(&resumed(&world, options(), &files)), finished(&collect));
}

/// Sums that no table holds are no reason to lose what was read.
#[test]
fn a_segment_ends_before_its_sums_overflow() {
    let mut world = World::empty();
    for hour in 0..3 {
        let timestamp = instant(hour * HOUR);
        let event = event(timestamp, Outcome::Success, ["a", "b", "c", ""], u64::MAX / 2);
        world.sandbox.record(&event).expect("a good event");
    }
    let mut collect = resumed(&world, collect_options(3 * HOUR, "1h"), &Files::new());
    let mut files = Files::new();
    while world.run_one(&mut collect, |_| None) {
        save(&mut collect, &mut files);
    }
    assert_eq!(files.len(), 2);
    let again = resumed(&world, collect_options(3 * HOUR, "1h"), &files);
    let error = again.finish().expect_err("too much");
    assert_eq!(error.error.code(), Code::SumOverflow);
    assert_eq!((error.partial, error.gaps.len()), (None, 0));
}

/// A window that was read early is read again by the next process, and counts as then.
#[test]
fn provisional_windows_are_read_again() {
    let mut world = World::with_events(3 * HOUR, 60);
    let options = || collect_options(3 * HOUR, "1h");
    world.now = at(3 * HOUR);
    let mut collect = resumed(&world, options(), &Files::new());
    world.run(&mut collect, |_| None);
    let mut files = Files::new();
    save(&mut collect, &mut files);
    let provisional = [window(2 * HOUR, 3 * HOUR)];
    assert_eq!(collect.provisional(), provisional);
    let segment: Value = serde_json::from_str(&files[&segment_name(0)]).expect("JSON");
    let marks = segment["table"]["windows"].as_array().expect("a list");
    let marks: Vec<&Value> = marks.iter().map(|window| &window["provisional"]).collect();
    assert_eq!(json!(marks), json!([null, null, true]));
    let partial = finished(&collect);
    assert_eq!(partial.provisional(), provisional);

    // An event comes late, and twice the window is read again: too early, and late enough.
    world.record(2 * HOUR * 1_000 + 5, &mut Random(2));
    for (seconds, early) in [(3 * HOUR + 60, true), (4 * HOUR, false)] {
        world.now = at(seconds);
        let mut again = resumed(&world, options(), &files);
        assert_eq!(again.progress().done, 2);
        world.run(&mut again, |_| None);
        save(&mut again, &mut files);
        assert_eq!(again.provisional().is_empty(), !early);
        assert_same_counts(&finished(&again), &world.truth(window(0, 3 * HOUR)));
    }
    assert_eq!(files.len(), 3);
    let last = resumed(&world, options(), &files);
    assert_same_counts(&finished(&last), &world.truth(window(0, 3 * HOUR)));
    let times: Vec<u32> = world.asked.values().copied().collect();
    assert_eq!(times, [1, 1, 3]);
}

#[test]
fn halved_windows_are_taken_up_half_by_half() {
    let mut world = World::with_events(4 * HOUR, 200);
    let options = || collect_options(4 * HOUR, "1h");
    let mut collect = resumed(&world, options(), &Files::new());
    let mut files = Files::new();
    let slow = |window: Window| {
        let is_long = window.end().unix_ms() - window.start().unix_ms() > 900_000;
        is_long.then_some(Trouble::Timeout)
    };
    for _ in 0..5 {
        assert!(world.run_one(&mut collect, slow));
        save(&mut collect, &mut files);
    }
    assert_eq!(stored(&files).len(), 2);
    let before = stored(&files);
    let asked_before = world.asked.clone();
    let mut again = resumed(&world, options(), &files);
    assert_eq!((again.progress().planned, again.progress().done), (6, 2));
    world.run(&mut again, slow);
    for window in before {
        assert_eq!(world.asked[&window], asked_before[&window]);
    }
    let table = finished(&again);
    assert_eq!(table.windows().len(), 16);
    assert_same_counts(&table, &world.truth(window(0, 4 * HOUR)));
}

#[test]
fn a_checkpoint_outranks_what_the_caller_has() {
    let mut world = World::with_events(4 * HOUR, 100);
    let options = || collect_options(4 * HOUR, "1h");
    let mut collect = resumed(&world, options(), &Files::new());
    let mut files = Files::new();
    for _ in 0..2 {
        assert!(world.run_one(&mut collect, |_| None));
    }
    save(&mut collect, &mut files);
    // The first window is the same, the second reaches out of the stored one.
    let partial = collect.finish().expect_err("half of it").partial.expect("half of it");
    let longer = [world.truth(window(0, HOUR)), world.truth(window(HOUR, 3 * HOUR))];
    let longer = CountTable::merge_all(&longer).expect("different times");
    for (have, requests) in [(partial, 2), (longer, 2)] {
        let before = world.requests();
        let options = options().have(have);
        let mut again = resumed(&world, options, &files);
        world.run(&mut again, |_| None);
        assert_eq!(world.requests() - before, requests);
        assert_same_counts(&finished(&again), &world.truth(window(0, 4 * HOUR)));
        assert_eq!(finished(&again).windows().len(), 4);
    }
}

/// A checkpoint of four hours, with two hours in each segment.
fn two_segments(world: &mut World) -> Files {
    let mut files = Files::new();
    for _ in 0..2 {
        let mut collect = resumed(world, collect_options(4 * HOUR, "1h"), &files);
        for _ in 0..2 {
            assert!(world.run_one(&mut collect, |_| None));
        }
        save(&mut collect, &mut files);
    }
    assert_eq!(files.len(), 2);
    files
}

#[test]
fn what_is_torn_or_was_changed_is_refused_and_changes_nothing() {
    let mut world = World::with_events(4 * HOUR, 40);
    let files = two_segments(&mut world);
    let good = &files[&segment_name(1)];
    let refused = |json: &str| {
        let mut collect =
            world.client.collect(collect_options(4 * HOUR, "1h")).expect("good options");
        collect.load(&segment_name(0), files[&segment_name(0)].as_bytes()).expect("a good segment");
        let error = collect.load(&segment_name(1), json.as_bytes()).expect_err("a refusal");
        assert_eq!(collect.progress().done, 2, "nothing has changed");
        collect.load(&segment_name(1), good.as_bytes()).expect("a good segment");
        assert!(collect.finish().is_ok());
        assert_eq!((error.code(), error.kind().as_str()), (Code::InvalidCheckpoint, "config"));
        error
    };
    for end in (0..good.len()).step_by(7) {
        let error = refused(&good[..end]);
        assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{error}");
        assert!(error.path().is_some());
    }
    assert_eq!(refused(&format!("{good}x")).path(), Some("$"));
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let error = refused(&good.replacen(from, to, 1));
        let path = error.path().expect("a place").to_owned();
        (path, without_advice(&error))
    };
    let place = |from: &str, to: &str| changed(from, to).0;
    assert_eq!(
        changed("checkpoint/3", "checkpoint/2"),
        (
            "$.format".to_owned(),
            "this isn't a checkpoint of this query: \"tallyfold-checkpoint/2\", \
             want \"tallyfold-checkpoint/3\""
                .to_owned()
        )
    );
    assert_eq!(place("\"segment\":1", "\"segment\":2"), "$.segment");
    assert_eq!(place("\"query\":{", "\"query\":{\"more\":1,"), "$.query");
    assert_eq!(
        place("\"totals\":{\"success\":\"", "\"totals\":{\"success\":\"1"),
        "$.table.totals"
    );
    assert_eq!(
        place("\"errors\":\"0\",\"filtered\"", "\"errors\":\"x\",\"filtered\""),
        "$.table.windows[0].rows[1].errors"
    );
    let (from, to) = (instant(2 * HOUR), instant(2 * HOUR + 60));
    let edges =
        |start: Timestamp, end: Timestamp| format!("{{\"start\":\"{start}\",\"end\":\"{end}\"");
    let third = edges(from, instant(3 * HOUR));
    let across = edges(instant(HOUR + 60), instant(3 * HOUR));
    assert_eq!(
        changed(&third, &across),
        (
            "$.table.windows[0]".to_owned(),
            "[2026-01-01T01:01:00Z, 2026-01-01T03:00:00Z) is more than what is kept together"
                .to_owned()
        )
    );
    let again = edges(from, to);
    assert_eq!(
        changed(&third, &again),
        (
            "$.table.windows[0]".to_owned(),
            "[2026-01-01T02:00:00Z, 2026-01-01T02:01:00Z) is neither a window of the plan nor a stored part"
                .to_owned()
        )
    );
    let fourth = edges(instant(3 * HOUR), instant(4 * HOUR));
    let later = edges(instant(9 * HOUR), instant(10 * HOUR));
    assert_eq!(place(&fourth, &later), "$.table.windows[1]");
    assert_eq!(place("\"parts\":[]", "\"parts\":"), "$");
    for parts in
        ["[1]", "[\"then\"]", "null", &format!("[\"{to}\"]"), &format!("[\"{to}\",\"{to}\"]")]
    {
        assert_eq!(place("\"parts\":[]", &format!("\"parts\":{parts}")), "$.parts");
    }
}

/// Each field of another query is named, with what it is and what it should be.
#[test]
fn a_checkpoint_of_another_query_is_refused() {
    let mut world = World::with_events(4 * HOUR, 40);
    let files = two_segments(&mut world);
    let refused = |change: fn(&mut CollectOptions)| {
        let mut options = collect_options(4 * HOUR, "1h");
        change(&mut options);
        let mut collect = world.client.collect(options).expect("good options");
        let error = load(&mut collect, &files).expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidCheckpoint);
        let path = error.path().expect("a path");
        let field = path.strip_prefix("$.query.").expect("a field of the query");
        let of = "this isn't a checkpoint of this query: ";
        let message = without_advice(&error);
        let message = message.strip_prefix(of).expect("what is wrong");
        format!("{field}: {message}")
    };
    let ingestion = |options: &mut CollectOptions| {
        options.metric = Metric::EventIngestion;
        options.dimensions = vec![Dimension::Integration];
    };
    assert_eq!(
        refused(ingestion),
        r#"metric: it was made with metric "event_delivery", not "event_ingestion"; to resume it, pass the same metric"#
    );
    assert_eq!(
        refused(|options| options.keep = Keep::Total),
        r#"keep: it was made with keep "windows", not "total"; to resume it, pass the same keep"#
    );
    assert_eq!(
        refused(|options| options.dimensions.reverse()),
        r#"dimensions: it was made with dimensions ["integration","reason"], not ["reason","integration"]; to resume it, pass the same dimensions"#
    );
    assert_eq!(
        refused(|options| options.group_by = Some(Vec::new())),
        r#"group_by: it was made with group_by ["integration","reason"], not []; to resume it, pass the same group_by"#
    );
    assert_eq!(
        refused(|options| options.window = step("30m")),
        r#"window: it was made with window "1h", not "30m"; to resume it, pass the same window"#
    );
    assert_eq!(
        refused(|options| options.part = Some((1, 2))),
        "part: it was made with part null, not [1,2]; to resume it, pass the same part"
    );

    let elsewhere = Machine::new(options().cluster_endpoint("https://other.example"));
    let options = collect_options(4 * HOUR, "1h");
    let mut collect = elsewhere.and_then(|client| client.collect(options)).expect("good options");
    let error = load(&mut collect, &files).expect_err("a refusal");
    assert_eq!(error.path(), Some("$.query.cluster"));

    // A flag is named as it is written.
    let options = collect_options(4 * HOUR, "30m");
    let mut collect = world.client.collect(options).expect("good options");
    let error = load(&mut collect, &files).expect_err("a refusal");
    let text = error.text_in(Spelling::Flag).to_string();
    let wanted =
        r#"it was made with --window "1h", not "30m"; to resume it, pass the same --window"#;
    assert!(text.contains(wanted), "{text}");

    // It makes no difference whether the same dimensions are kept by default.
    let options = collect_options(4 * HOUR, "1h").group_by(DIMENSIONS.to_vec()).finest(step("1s"));
    assert!(resumed(&world, options, &files).finish().is_ok());
}

#[test]
fn segments_are_loaded_in_order_and_before_the_start() {
    let mut world = World::with_events(4 * HOUR, 40);
    let files = two_segments(&mut world);
    let mut collect = resumed(&world, collect_options(4 * HOUR, "1h"), &Files::new());
    let mut load = |number: u64| {
        let name = segment_name(number);
        let json = files.get(&name).map_or("{}", String::as_str);
        collect.load(&name, json.as_bytes()).map_err(|error| error.code())
    };
    assert_eq!(load(1), Err(Code::InvalidArgument));
    assert_eq!(load(0), Ok(()));
    assert_eq!(load(0), Err(Code::InvalidArgument));
    assert_eq!(load(2), Err(Code::InvalidArgument));
    assert!(matches!(collect.next(world.now), CollectStep::Drive(Drive { .. })));
    let late = collect.load(&segment_name(1), files[&segment_name(1)].as_bytes());
    assert_eq!(late.map_err(|error| error.code()), Err(Code::OutOfOrder));
}

#[test]
fn nothing_secret_is_stored_or_shown() {
    let mut world = World::with_events(4 * HOUR, 40);
    let mut collect = resumed(&world, collect_options(4 * HOUR, "1h"), &Files::new());
    world.run(&mut collect, |_| None);
    let segment = collect.unsaved().expect("new windows");
    // It says whose counts they are.
    let identity = format!("\"cluster\":\"{ADDRESS}, client sandbox-client\"");
    assert!(segment.json.contains(&identity));
    let shown = format!("{collect:?} {segment:?}");
    let demo = SandboxOptions::default();
    let secrets = [demo.client_secret.expose(), &demo.control_audience, "Bearer", "token"];
    for secret in secrets {
        assert!(!segment.json.contains(secret), "{secret}");
        assert!(!shown.contains(secret), "{secret}");
    }
}

/// The fault of a caller whose clock is ahead: the `Date` of each response is behind.
fn behind(milliseconds: u32) -> Fault {
    Fault { effect: FaultEffect::Date { milliseconds }, endpoint: None, every: Some(1) }
}

#[test]
fn a_checkpoint_of_a_clock_that_is_ahead_settles_only_what_the_service_says() {
    let mut world = World::with_events(4 * HOUR, 100);
    world.now = at(6 * HOUR);
    let fault = behind(3 * 3_600_000);
    world.sandbox.inject(fault).expect("a good fault");
    let mut files = Files::new();
    let mut collect = world.client.collect(collect_options(4 * HOUR, "1h"));
    let collect = collect.as_mut().expect("good options");
    world.run(collect, |_| None);
    save(collect, &mut files);
    let settled = [window(0, HOUR), window(HOUR, 2 * HOUR)];
    assert_eq!(stored(&files), settled.into_iter().collect());
    // Later, by a clock that is right, the others are read again, and so are not frozen.
    let mut again = resumed(&world, collect_options(4 * HOUR, "1h"), &files);
    assert_eq!(again.progress().done, 2);
    world.record_one(4 * HOUR * 1_000 - 1);
    world.run(&mut again, |_| None);
    assert_same_counts(&finished(&again), &world.truth(window(0, 4 * HOUR)));
}

#[test]
fn a_checkpoint_of_the_future_is_an_error_that_says_so() {
    let mut world = World::with_events(4 * HOUR, 100);
    world.now = at(6 * HOUR);
    let mut files = Files::new();
    let mut collect = world.client.collect(collect_options(4 * HOUR, "1h"));
    let collect = collect.as_mut().expect("good options");
    world.run(collect, |_| None);
    save(collect, &mut files);
    world.now = at(3 * HOUR);
    let mut again = resumed(&world, collect_options(4 * HOUR, "1h"), &files);
    assert!(matches!(again.next(world.now), CollectStep::Done));
    let ended = again.finish();
    // All of it is known, so only the clock shows that it can't be.
    let error = ended.expect_err("counts of the future").error;
    assert_eq!(error.code(), Code::InvalidCheckpoint);
    assert_eq!(error.argument_name(), Some("checkpoint"));
    assert!(error.message().contains("from the future"), "{error}");
}
