//! Runs each command with five clusters for days of virtual time, while everything goes wrong.
//!
//! Events arrive up to three hours late, services are down for hours, connections break, the wall clock jumps, and every program is
//! killed about every hour, in the middle of whatever it does. In the end, each program must have delivered exactly the counts of
//! the clusters. `SOAK_HOURS=720` runs a month, `SOAK_SEED` selects another sequence of events, and `SOAK_LOG=1` logs every process.

// `process.c` replaces functions of glibc.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod machine;
mod world;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;

use crate::support::fetch;
use machine::{Failed, Machine, Task};
use serde_json::Value;
use tallyfold::Timestamp;
use tallyfold_export::{Counter, Labels, Ledger};
use world::{
    CLUSTERS, Counts, HOUR, HOURS, SEED, START, Truth, name_of, number_of, place_of, text,
};

/// The flags of each program that follows: the range and the windows.
const FOLLOWING: [&str; 10] =
    ["--from", START, "--until", "{END}", "--window", "1h", "--reread", "90m", "--settle", "3h"];

/// Counts by cluster and integration.
type Sums = BTreeMap<(usize, String), Counts>;

#[test]
fn a_follow_writes_every_window() {
    let mut machine =
        machine(1, &[&["follow", "--format", "ndjson", "--state", "states"], &FOLLOWING[..]]);
    machine.run(Task::Lasting, is_from_the_future);
    report(&machine);
    let text = fs::read_to_string(machine.folder.path().join("stdout")).unwrap();
    // After a kill, the last revision may be written again, with the same number. It replaces the one before.
    let mut revisions = BTreeMap::new();
    let mut torn = 0;
    for line in text.lines() {
        let Ok(row) = serde_json::from_str::<Value>(line) else {
            torn += 1;
            continue;
        };
        let (group, counts) = read_row(&row);
        revisions.insert((group, row["revision"].as_u64().unwrap()), counts);
    }
    assert!(torn <= machine.kills[0], "SOAK_SEED={}: {torn} torn lines", *SEED);
    let mut found = Truth::new();
    for ((group, _), counts) in revisions {
        add(found.entry(group).or_default(), counts);
    }
    assert_equal(&found, &machine.world.truth);
}

#[test]
fn a_push_delivers_every_change() {
    let push = ["push", "--to", "influx", "{DATABASE}/write", "--follow", "--state", "states"];
    let mut machine = machine(2, &[&push, &FOLLOWING[..]]);
    machine.run(Task::Lasting, |failed| is_an_outage(failed) || is_from_the_future(failed));
    report(&machine);
    assert_equal(&sums(pushed(&machine.world)), &truth(&machine));
}

#[test]
fn a_push_delivers_running_totals() {
    let push = ["push", "--to", "otlp-json", "{DATABASE}/v1/metrics", "--follow", "--cumulative"];
    let more = ["--every", "1h", "--state", "states"];
    let mut machine = machine(3, &[&push, &more, &FOLLOWING[..]]);
    // Totals have the service's time, so only a clock that is behind makes them look as if they were from the future.
    machine.run(Task::Lasting, |failed| {
        is_an_outage(failed) || failed.is_behind && is_from_the_future(failed)
    });
    report(&machine);
    let totals = &machine.world.database.totals;
    let found = totals.iter().map(|((cluster, name, place), (.., value))| {
        ((*cluster, name.clone()), only(*place, *value))
    });
    assert_equal(&sums(found), &truth(&machine));
}

#[test]
fn the_totals_of_a_scrape_never_decrease() {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--state", "states"];
    let mut machine = machine(4, &[&serve, &FOLLOWING[..]]);
    let mut scraper = Scraper::default();
    let mut visit = |world: &world::World, stderr: &str| {
        let mut lines = stderr.lines();
        let url = lines.find_map(|line| line.strip_prefix("serving "));
        let is_settled = url.is_some_and(|url| scraper.scrape(url));
        // A window that couldn't be read may settle after the last one.
        is_settled && world.now_ms > (*HOURS + 8) * HOUR
    };
    machine.run(Task::Endless(&mut visit), |_| false);
    report(&machine);
    println!("{} scrapes", scraper.scrapes);
    assert_equal(&scraper.sums(), &truth(&machine));
    // The stored totals, with which the next process would begin, are the same.
    let stored = (0..CLUSTERS).flat_map(|cluster| {
        let file = format!("states/{}.json", name_of(cluster));
        let ledger = fs::read(machine.folder.path().join(file)).unwrap();
        let ledger = Ledger::from_json(&ledger).unwrap();
        let counters = ledger.counters(&Labels::default(), None).unwrap();
        counters.into_iter().flat_map(move |counter: Counter| {
            let place = place_of(&counter.name);
            let samples = counter.samples.into_iter();
            samples
                .map(move |(values, count)| ((cluster, values.concat()), only(place, count.into())))
        })
    });
    assert_equal(&sums(stored), &truth(&machine));
}

/// The configuration of a run that pushes and checks.
const RUN: &str = r#"
[push.database]
format = "influx"
url = "{DATABASE}/write"
patience = "1h"

[check]
rules = "health.toml"

[run]
push = ["database"]
check = true
"#;

/// A rule that often fires for random counts.
const RULES: &str = r#"
dimensions = ["integration", "reason"]
window = "1h"

[[rule]]
name = "many errors"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
above = "60%"
"#;

#[test]
fn a_run_scrapes_pushes_and_checks_at_once() {
    let run = ["run", "--listen", "127.0.0.1:0", "--state", "states"];
    let mut machine = configured(6, &[&run, &FOLLOWING[..]], RUN);
    fs::write(machine.folder.path().join("health.toml"), RULES).unwrap();
    let (mut scraper, mut checks) = (Scraper::default(), 0);
    let mut visit = |world: &world::World, stderr: &str| {
        let mut lines = stderr.lines();
        let url = lines.find_map(|line| line.strip_prefix("serving "));
        checks += stderr.matches("firing warning: ").count();
        let is_settled = url.is_some_and(|url| scraper.scrape(url));
        // The push may still be waiting for the database.
        let expected = world.truth.iter();
        let expected = sums(expected.map(|((of, _, name), counts)| ((*of, name.clone()), *counts)));
        is_settled && sums(pushed(world)) == expected
    };
    machine.run(Task::Endless(&mut visit), |_| false);
    report(&machine);
    println!("{} scrapes, {checks} incidents", scraper.scrapes);
    assert!(checks > 0, "no check has found anything");
    assert_equal(&scraper.sums(), &truth(&machine));
    assert_equal(&sums(pushed(&machine.world)), &truth(&machine));
}

#[test]
fn an_hourly_collect_counts_every_event() {
    let collect = ["collect", "--from", START, "--by-window", "1h", "--window", "1h"];
    let more =
        ["--settle", "3h", "--checkpoint", "parts", "--format", "ndjson", "-o", "counts.ndjson"];
    let mut machine = machine(5, &[&collect, &more]);
    machine.run(Task::Hourly, |failed| {
        // The clock can show a time before the start.
        let has_no_range =
            failed.code == 2 && failed.stderr.contains("--from: want a timestamp before");
        // The exit code 6 means that a part of the range could not be read.
        failed.code == 6 || has_no_range || is_an_outage(failed)
    });
    report(&machine);
    let text = fs::read_to_string(machine.folder.path().join("counts.ndjson")).unwrap();
    let mut found = Truth::new();
    for line in text.lines() {
        let row = serde_json::from_str::<Value>(line).unwrap();
        let (group, counts) = read_row(&row);
        let seed = *SEED;
        assert_eq!(row["settled"], true, "SOAK_SEED={seed}: {line}");
        assert_eq!(found.insert(group, counts), None, "SOAK_SEED={seed}: twice: {line}");
    }
    assert_equal(&found, &machine.world.truth);
}

/// A machine that runs the command with these arguments.
fn machine(number: i64, arguments: &[&[&str]]) -> Machine {
    configured(number, arguments, "")
}

/// A machine with more lines of configuration.
fn configured(number: i64, arguments: &[&[&str]], more: &str) -> Machine {
    println!("SOAK_SEED={}", *SEED);
    let seed = u64::try_from(*SEED * 10 + number).unwrap();
    Machine::new(seed, &arguments.concat(), more)
}

/// Whether a job has exited because a service was down for longer than the job's patience.
fn is_an_outage(failed: &Failed<'_>) -> bool {
    failed.code == 4
}

/// Whether a program has refused a state from the future, which it has stored while the clock was ahead.
fn is_from_the_future(failed: &Failed<'_>) -> bool {
    failed.code == 2 && failed.stderr.contains("from the future")
}

/// Prints how much has happened, and checks that it was enough.
fn report(machine: &Machine) {
    let Machine { lives, kills: [operating, waiting], failures, world, .. } = machine;
    let (windows, late) = (world.truth.len(), world.late);
    println!(
        "{} hours, {lives} processes, {operating} kills before an operation and {waiting} while waiting, \
         exit codes {failures:?}, {windows} counts by window and integration, {late} late events",
        *HOURS
    );
    let least = usize::try_from(*HOURS / 4).unwrap();
    assert!(operating + waiting > least && late > least, "too little has happened");
}

/// Reads a row of NDJSON: cluster, hour and integration, and the counts.
fn read_row(row: &Value) -> ((usize, i64, String), Counts) {
    let text = |name: &str| row[name].as_str().unwrap();
    let ms = |text: &str| Timestamp::parse(text).unwrap().unix_ms();
    let hour = (ms(text("window_start")) - ms(START)) / HOUR;
    let counts = ["success", "errors", "filtered"].map(|name| match &row[name] {
        // Above 2^53 - 1, counts are strings.
        Value::String(digits) => digits.parse().unwrap(),
        number => number.as_i64().unwrap().into(),
    });
    let group = (number_of(text("cluster")), hour, text("integration").to_owned());
    (group, counts)
}

fn add(sum: &mut Counts, counts: Counts) {
    for (sum, count) in sum.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// Counts in which only the count at `place` isn't 0.
fn only(place: usize, count: i128) -> Counts {
    let mut counts = [0; 3];
    counts[place] = count;
    counts
}

fn sums(counts: impl IntoIterator<Item = ((usize, String), Counts)>) -> Sums {
    let mut sums = Sums::new();
    for (group, counts) in counts {
        add(sums.entry(group).or_default(), counts);
    }
    sums
}

/// What the database has received.
fn pushed(world: &world::World) -> impl Iterator<Item = ((usize, String), Counts)> {
    world.database.points.iter().map(|((series, _), counts)| {
        let tag = |name: &str| {
            let mut tags = series.split(',').filter_map(|tag| tag.split_once('='));
            tags.find(|(known, _)| *known == name).unwrap().1
        };
        let group = (number_of(tag("cluster")), tag("integration").to_owned());
        (group, *counts)
    })
}

fn truth(machine: &Machine) -> Sums {
    let truth = machine.world.truth.iter();
    sums(truth.map(|((cluster, _, name), counts)| ((*cluster, name.clone()), *counts)))
}

/// Checks that the counts of all groups are equal, and names the groups that differ.
fn assert_equal<K: Clone + Debug + Ord>(found: &BTreeMap<K, Counts>, truth: &BTreeMap<K, Counts>) {
    let mut groups: Vec<&K> = found.keys().chain(truth.keys()).collect();
    groups.sort();
    groups.dedup();
    groups.retain(|group| found.get(group) != truth.get(group));
    let lines = groups.iter().take(20).map(|group| {
        let (found, truth) = (found.get(group), truth.get(group));
        format!("\n{group:?}: {found:?}, want {truth:?}")
    });
    assert!(
        groups.is_empty(),
        "SOAK_SEED={}: {} groups differ from the truth:{}",
        *SEED,
        groups.len(),
        lines.collect::<String>()
    );
}

/// Reads totals as Prometheus does.
#[derive(Default)]
struct Scraper {
    /// The totals by cluster, integration and outcome.
    totals: BTreeMap<(usize, String, usize), i128>,
    scrapes: usize,
}

impl Scraper {
    /// The counts of the last scrapes.
    fn sums(&self) -> Sums {
        let totals = self.totals.iter();
        sums(totals.map(|((cluster, name, place), value)| {
            ((*cluster, name.clone()), only(*place, *value))
        }))
    }

    /// Reads the totals once. Returns whether all windows are settled.
    fn scrape(&mut self, url: &str) -> bool {
        // The process may be killed while it responds.
        let Some(answer) = fetch("GET", url, "") else {
            return false;
        };
        assert_eq!(answer.status, 200, "SOAK_SEED={}: {}", *SEED, answer.body);
        self.scrapes += 1;
        let label = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.to_owned()
        };
        let lines = || answer.body.lines().filter(|line| !line.starts_with('#'));
        let mut missing = self.totals.clone();
        for line in lines().filter(|line| line.contains("_settled_events_total{")) {
            let cluster = number_of(&label(line, "cluster"));
            let series = (cluster, label(line, "integration"), place_of(line));
            let value: i128 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            missing.remove(&series);
            let before = self.totals.insert(series, value).unwrap_or_default();
            assert!(before <= value, "SOAK_SEED={}: was {before}: {line}", *SEED);
        }
        assert!(missing.is_empty(), "SOAK_SEED={}: these have vanished: {missing:?}", *SEED);
        let end = Timestamp::parse(&text(*HOURS * HOUR)).unwrap().unix_ms() / 1_000;
        let is_settled = |line: &&str| {
            line.contains("_settled_until_seconds{") && line.ends_with(&format!(" {end}.000"))
        };
        lines().filter(is_settled).count() == CLUSTERS
    }
}
