//! Which windows a collect keeps, how much memory that takes, and checkpoints of ranges that move.

use std::collections::BTreeSet;

use tallyfold::keeper::segment_name;
use tallyfold::{
    Code, Collect, CollectOptions, CollectStep, CountTable, Error, Frame, Keep, Settled, Window,
};
use tallyfold_sandbox::Outcome;

use super::checkpoint::{Files, load, resumed, save};
use super::world::{
    Random, Trouble, World, assert_same_counts, collect_options, event, instant, new_year, window,
};
use crate::support::at;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

fn keeping(keep: &str, options: CollectOptions) -> CollectOptions {
    options.keep(Keep::parse(keep).expect("a good word"))
}

/// The table of a collect that kept every window and had no failures.
fn unbroken(world: &mut World, options: CollectOptions) -> CountTable {
    let mut collect = resumed(world, options, &Files::new());
    world.run(&mut collect, |_| None);
    world.asked.clear();
    collect.finish().expect("a whole table")
}

/// Runs up to `calls` calls of a collect, and stores after each. Returns false if the collect has
/// ended.
fn run_for(world: &mut World, collect: &mut Collect, files: &mut Files, calls: u64) -> bool {
    for _ in 0..calls {
        if !world.run_one(collect, |_| None) {
            return false;
        }
        save(collect, files);
    }
    true
}

#[test]
fn windows_are_added_up_to_what_is_kept() {
    let range = 2 * DAY - HOUR;
    let mut world = World::with_events(2 * DAY, 900);
    let options = || collect_options(range, "15m").start(instant(2 * HOUR + 60));
    let every = unbroken(&mut world, options());
    for (keep, edges) in [
        ("1d", vec![2 * HOUR + 60, DAY, range]),
        ("total", vec![2 * HOUR + 60, range]),
        ("12h", vec![2 * HOUR + 60, 12 * HOUR, DAY, 36 * HOUR, range]),
    ] {
        let mut collect = resumed(&world, keeping(keep, options()), &Files::new());
        world.run(&mut collect, |_| None);
        let progress = collect.progress();
        assert_eq!((progress.done, progress.planned), (180, 180));
        let table = collect.finish().expect("a whole table");
        let kept: Vec<Window> = edges.windows(2).map(|of| window(of[0], of[1])).collect();
        assert_eq!(table.windows(), kept, "{keep}");
        assert_same_counts(&table, &every);
        assert_eq!(table.reported(), every.reported());
        for own in kept {
            assert_same_counts(&sum_of(&table, own), &world.truth(own));
        }
    }
}

/// The sum of a table's rows in a window.
fn sum_of(table: &CountTable, window: Window) -> CountTable {
    let series = table.by_window(None).expect("its own windows");
    assert!(series.windows().iter().any(|of| of.window == window));
    let json: serde_json::Value = serde_json::from_str(&table.to_json()).expect("JSON");
    let windows = json["windows"].as_array().expect("a list");
    let start = window.start().to_string();
    let own = windows.iter().find(|of| of["start"] == start.as_str());
    let own = own.expect("a window");
    let mut totals = serde_json::json!({"success": 0_u64, "errors": 0_u64, "filtered": 0_u64});
    for row in own["rows"].as_array().expect("a list") {
        for name in ["success", "errors", "filtered"] {
            let digits = row[name].as_str().expect("digits");
            let count: u64 = digits.parse().expect("a count");
            totals[name] = (totals[name].as_u64().expect("a sum") + count).into();
        }
    }
    let digits = |name: &str| totals[name].to_string();
    let saved = serde_json::json!({
        "format": "tallyfold-table/1",
        "metric": json["metric"],
        "dimensions": json["dimensions"],
        "filter": [],
        "totals": {"success": digits("success"), "errors": digits("errors"), "filtered": digits("filtered")},
        "windows": [own],
    });
    CountTable::from_json(saved.to_string().as_bytes()).expect("a table")
}

/// A window that was halved or failed, or is provisional, keeps its neighbours apart until it is read.
#[test]
fn what_may_change_is_kept_by_itself() {
    let mut world = World::with_events(6 * HOUR, 200);
    world.now = at(6 * HOUR + 60);
    let options = || keeping("total", collect_options(6 * HOUR, "1h"));
    let mut files = Files::new();
    let mut collect = resumed(&world, options(), &files);
    world
        .run(&mut collect, |of| (of == window(2 * HOUR, 3 * HOUR)).then_some(Trouble::Status(400)));
    save(&mut collect, &mut files);
    let ended = collect.finish().expect_err("a window is missing");
    let partial = ended.partial.expect("the others");
    let kept = [(0, 2), (3, 5), (5, 6)].map(|(from, to)| window(from * HOUR, to * HOUR));
    assert_eq!(partial.windows(), kept);
    assert_eq!(partial.provisional(), kept[2..]);

    // Once the hour is settled, both are read, and all is one.
    world.now = at(7 * HOUR);
    world.asked.clear();
    let mut again = resumed(&world, options(), &files);
    assert_eq!(again.progress().done, 4);
    world.run(&mut again, |_| None);
    save(&mut again, &mut files);
    let table = again.finish().expect("a whole table");
    assert_eq!(table.windows(), [window(0, 6 * HOUR)]);
    assert_eq!((table.provisional(), world.requests()), (vec![], 2));
    assert_same_counts(&table, &world.truth(window(0, 6 * HOUR)));
    assert_eq!(files.len(), 1);
    let last = resumed(&world, options(), &files);
    assert_eq!(last.finish().as_ref(), Ok(&table));
}

/// 2,880 windows with faults and halved windows, kept by the day; the process is killed again and again.
#[test]
fn days_of_a_month_that_was_killed_are_exact() {
    const MONTH: u64 = 30 * DAY;
    let mut world = World::with_events(MONTH, 3_000);
    let options = || keeping("1d", collect_options(MONTH, "15m"));
    let mut random = Random(33);
    let mut files = Files::new();
    let mut asked = 0;
    let table = loop {
        let mut collect = resumed(&world, options(), &files);
        let life = if asked < 2_500 { 40 + random.below(300) } else { u64::MAX };
        for _ in 0..life {
            let trouble = (random.below(40) == 0).then(|| match random.below(3) {
                0 => Trouble::Timeout,
                1 => Trouble::Network,
                _ => Trouble::Status(500),
            });
            if !world.run_one(&mut collect, |_| trouble) {
                break;
            }
            // Sometimes what was read is stored later, as with a slow disk.
            if random.below(3) > 0 {
                save(&mut collect, &mut files);
            }
        }
        asked = world.requests();
        if let Ok(table) = collect.finish() {
            break table;
        }
    };
    let days: Vec<Window> = (0..30).map(|day| window(day * DAY, (day + 1) * DAY)).collect();
    assert_eq!(table.windows(), days);
    for day in &days {
        assert_same_counts(&sum_of(&table, *day), &world.truth(*day));
    }
    assert_eq!(files.len(), 30);
    assert!(asked < 2_880 * 115 / 100, "{asked}");
}

/// The last two days, every six hours: what was read is read once, and what is old is dropped or kept.
#[test]
fn a_range_that_moves_is_read_once() {
    for (keep, drop_old) in [("windows", false), ("windows", true), ("1h", false), ("1h", true)] {
        let mut world = World::with_events(8 * DAY, 1_500);
        let mut files = Files::new();
        let mut sizes = Vec::new();
        for run in 0..20 {
            let (from, to) = (run * 6 * HOUR, run * 6 * HOUR + 2 * DAY);
            world.now = at(to + 60);
            let options = || {
                keeping(keep, collect_options(DAY, "15m"))
                    .start(instant(from))
                    .end(instant(to))
                    .drop_old(drop_old)
            };
            // Killed in the middle.
            let mut killed = resumed(&world, options(), &files);
            run_for(&mut world, &mut killed, &mut files, 9);
            let mut collect = resumed(&world, options(), &files);
            run_for(&mut world, &mut collect, &mut files, u64::MAX);
            let table = collect.finish().expect("a whole table");
            assert_same_counts(&table, &world.truth(window(from, to)));
            sizes.push(files.values().map(String::len).sum::<usize>());
        }
        // All but the newest four windows of each run are settled.
        let twice = world.asked.values().filter(|times| **times > 1).count();
        assert!(twice <= 20 * 8, "{twice} of {}", world.asked.len());
        assert!(world.asked.values().all(|times| *times <= 3));
        let grown = sizes[19] > sizes[9] * 3 / 2;
        assert_eq!(grown, !drop_old, "{keep}: {sizes:?}");
        // An earlier range still uses what was not dropped.
        let early = keeping(keep, collect_options(DAY, "15m")).start(new_year()).end(instant(DAY));
        let done = resumed(&world, early, &files).progress().done;
        assert_eq!(done > 90, !drop_old, "{keep}: {done}");
    }
}

/// A range that begins inside of a kept step reads that step again, and loses nothing that is stored.
#[test]
fn a_kept_step_that_reaches_out_of_the_range_stays_stored() {
    let mut world = World::with_events(3 * DAY, 300);
    let range = |from: u64, to: u64| {
        keeping("1d", collect_options(DAY, "1h")).start(instant(from)).end(instant(to))
    };
    let mut files = Files::new();
    for (from, to, asked) in [(0, 2 * DAY, 48), (12 * HOUR, 3 * DAY, 36), (0, 3 * DAY, 0)] {
        world.asked.clear();
        let mut collect = resumed(&world, range(from, to), &files);
        run_for(&mut world, &mut collect, &mut files, u64::MAX);
        let table = collect.finish().expect("a whole table");
        assert_same_counts(&table, &world.truth(window(from, to)));
        assert_eq!(world.requests(), asked, "{from} to {to}");
    }
}

#[test]
fn too_much_memory_ends_a_collect_and_names_what_to_do() {
    let mut world = World::with_events(DAY, 900);
    let options = |memory_limit, keep: &str| {
        keeping(keep, collect_options(DAY, "15m")).memory_limit(memory_limit)
    };
    let mut collect = resumed(&world, options(8_000, "windows"), &Files::new());
    world.run(&mut collect, |_| None);
    let ended = collect.finish().expect_err("too much");
    assert_eq!(ended.error.code(), Code::MemoryLimit);
    let advice = "add windows up by keep, such as 1h, 1d or total";
    assert!(ended.error.message().ends_with(advice), "{}", ended.error);
    let message = ended.error.message();
    assert!(message.contains("keep") && message.contains("8000 bytes"), "{message}");
    let partial = ended.partial.expect("what was read");
    assert!(world.requests() < 90 && partial.windows().len() == world.requests() as usize);
    let mut less = resumed(&world, options(8_000, "total"), &Files::new());
    world.run(&mut less, |_| None);
    assert_same_counts(&less.finish().expect("a whole table"), &world.truth(window(0, DAY)));
}

/// The memory of responses that are being read counts, too: a large window is read while no other is.
#[test]
fn a_window_that_needs_more_than_its_share_is_read_alone() {
    let mut world = World::empty();
    for number in 0..20_000 {
        // The first window and the third are large.
        for seconds in [60, 1_860] {
            let values = ["Order Created", "web", &format!("integration {number}"), ""];
            let event = event(instant(seconds), Outcome::Success, values, 1);
            world.sandbox.record(&event).expect("a good event");
        }
    }
    let options =
        |memory_limit| keeping("total", collect_options(HOUR, "15m")).memory_limit(memory_limit);
    let mut collect = resumed(&world, options(8 << 20), &Files::new());
    let (mut large, mut most) = (0, 0);
    loop {
        let mut under_way = Vec::new();
        while let CollectStep::Drive(drive) = collect.next(world.now) {
            under_way.push(drive);
        }
        if under_way.is_empty() {
            break;
        }
        most = most.max(under_way.len());
        let is_alone = under_way.len() == 1;
        for mut drive in under_way {
            world.drive(&mut drive.call, drive.window, None);
            let settled = collect.settle(drive.task, &mut drive.call, world.now);
            match settled.expect("a known task") {
                Settled::TooLarge => large += 1,
                settled => assert!(matches!(settled, Settled::Kept { .. }), "{settled:?}"),
            }
            if world.asked[&drive.window] == 2 {
                assert!(is_alone, "{:?}", drive.window);
            }
        }
    }
    assert_eq!((large, most), (2, 4));
    assert_same_counts(&collect.finish().expect("a whole table"), &world.truth(window(0, HOUR)));

    // What does not fit even alone ends the collect with the limit's own error.
    let mut collect = resumed(&world, options(2 << 20), &Files::new());
    world.run(&mut collect, |_| None);
    let ended = collect.finish().expect_err("too much");
    assert_eq!(ended.error.code(), Code::MemoryLimit);
    // The windows are added up already.
    let advice = "raise it, or count by fewer dimensions";
    assert!(ended.error.message().ends_with(advice), "{}", ended.error);
}

#[test]
fn an_error_of_a_segment_names_its_file_and_what_to_do() {
    let mut world = World::with_events(2 * HOUR, 20);
    let mut files = Files::new();
    let mut collect = resumed(&world, collect_options(2 * HOUR, "1h"), &files);
    run_for(&mut world, &mut collect, &mut files, u64::MAX);
    let json = &files[&segment_name(0)];
    let place = format!("/var/lib/counts/{}", segment_name(0));
    let refused = |keep: &str, json: &str| -> Error {
        let options = keeping(keep, collect_options(2 * HOUR, "1h"));
        let mut collect = world.client.collect(options).expect("good options");
        collect.load(&place, json.as_bytes()).expect_err("a refusal")
    };
    for error in [refused("total", json), refused("windows", &json[..99])] {
        assert_eq!(error.code(), Code::InvalidCheckpoint);
        let message = error.message();
        assert!(message.contains(&place), "{message}");
        assert!(message.contains("use another checkpoint, or remove this segment"), "{message}");
    }
    let mut collect = world.client.collect(collect_options(2 * HOUR, "1h")).expect("good options");
    assert_eq!(collect.load(&place, json.as_bytes()), Ok(()));
    let wrong = collect.load("/var/lib/counts/x.json", json.as_bytes()).expect_err("another name");
    assert_eq!(wrong.code(), Code::InvalidArgument);
}

/// A collect that is loaded again and again has the same windows, whatever was stored by which run.
#[test]
fn loading_changes_nothing_that_is_stored() {
    let mut world = World::with_events(2 * DAY, 200);
    for keep in ["windows", "6h", "total"] {
        let options = || keeping(keep, collect_options(2 * DAY, "1h"));
        let mut files = Files::new();
        let mut collect = resumed(&world, options(), &files);
        run_for(&mut world, &mut collect, &mut files, 31);
        let stored = files.clone();
        let mut again = resumed(&world, options(), &files);
        assert_eq!(again.unsaved(), None);
        assert_eq!(again.progress().done, 31);
        save(&mut again, &mut files);
        assert_eq!(files, stored);
        let names: BTreeSet<&String> = files.keys().collect();
        assert_eq!(names.len(), if keep == "6h" { 6 } else { 1 });
        assert!(load(&mut again, &files).is_err(), "each segment is loaded once");
    }
}

/// Sums that can't be stored are not: what can be read of the range is read again, and not refused.
#[test]
fn a_kept_step_whose_sums_overflow_does_not_spoil_the_checkpoint() {
    let mut world = World::empty();
    for hour in 0..3 {
        let counts = event(instant(hour * HOUR), Outcome::Success, ["a", "b", "c", "d"], 1 << 63);
        world.sandbox.record(&counts).expect("a good event");
    }
    for keep in ["total", "2h", "windows"] {
        let mut files = Files::new();
        let options = |hours: u64| keeping(keep, collect_options(hours * HOUR, "1h"));
        for _ in 0..2 {
            let mut collect = resumed(&world, options(3), &files);
            run_for(&mut world, &mut collect, &mut files, u64::MAX);
            let error = collect.finish().expect_err("an overflow").error;
            assert_eq!(error.code(), Code::SumOverflow, "{keep}");
        }
        let mut hour = resumed(&world, options(1), &files);
        run_for(&mut world, &mut hour, &mut files, u64::MAX);
        assert!(hour.finish().is_ok(), "{keep}");
    }
}
