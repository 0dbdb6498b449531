//! What it costs to judge and to explain counts.

use std::fmt::Write;
use std::time::Instant;

use tallyfold::{Aggregator, AggregatorOptions, CountTable, Timestamp, Window};
use tallyfold_health::{
    Attribute, ExplainOptions, Leaves, Measure, Observed, Rules, Tally, explain_leaves,
};

use crate::body::Random;
use crate::memory::{rest_peak, status};
use crate::report::{Measurement, Target, Unit};

/// What is judged: 30 days of 15 minutes, and groups of an integration and an event.
const WINDOWS: i64 = 2_880;
const INTEGRATIONS: u64 = 20;
const EVENTS: u64 = 60;
const START_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 900_000;

/// The limits, in seconds and bytes.
const JUDGED_IN: f64 = 2.0;
const JUDGED_WITH: f64 = (64 << 20) as f64;
const EXPLAINED_IN: f64 = 1.0;

const LEAVES: u64 = 1_000_000;
const ROUNDS: usize = 5;

const RULES: &str = r#"
[[rule]]
name = "fails"
kind = "rate"
by = ["integration", "event_name"]
"#;

pub(crate) fn measure() {
    judging();
    explaining();
}

fn judging() {
    let table = table();
    let rules = Rules::parse(RULES).expect("good rules");
    let range = window(0, WINDOWS);
    let observed = Observed {
        delivery: Some(&table),
        ingestion: None,
    };
    let idle = rest_peak();
    let mut judged = 0;
    let seconds = median_seconds(|| {
        judged = rules.replay(&observed, range).expect("a replay").judged;
    });
    let used = status("VmHWM:") - idle;
    assert!(judged > 3_000_000, "{judged} windows of groups were judged");
    let work = "2,880 windows by 1,200 groups judged";
    tell(work, "2 s", [seconds, JUDGED_IN], Unit::Seconds);
    let work = "2,880 windows by 1,200 groups judged, memory beside the table";
    tell(work, "64 MiB", [used, JUDGED_WITH], Unit::Bytes);
}

fn explaining() {
    let leaves = leaves();
    let options = ExplainOptions::default();
    let seconds = median_seconds(|| {
        let found = explain_leaves(&leaves, Measure::ErrorRate, &options);
        assert_eq!(found.causes.len(), 1, "{}", found.sentence);
    });
    let work = "a change of 1,000,000 leaves explained";
    tell(work, "1 s", [seconds, EXPLAINED_IN], Unit::Seconds);
}

fn median_seconds(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn tell(work: &str, limit: &str, [ours, most]: [f64; 2], unit: Unit) {
    Measurement {
        language: "Rust".to_owned(),
        work: work.to_owned(),
        peer: limit.to_owned(),
        medians: [ours, most],
        unit,
        body_bytes: None,
        ratio: ours / most,
        target: Some(Target::AtMost(1.0)),
    }
    .tell();
}

fn window(from: i64, until: i64) -> Window {
    let at = |number: i64| Timestamp::from_unix_ms(START_MS + number * STEP_MS).expect("a year");
    Window::new(at(from), at(until)).expect("a window")
}

/// Thirty days in windows, in which groups differ in size and vary by the time of the day.
fn table() -> CountTable {
    let mut random = Random(11);
    let windows: Vec<CountTable> = (0..WINDOWS)
        .map(|number| {
            let mut aggregator =
                Aggregator::new(&["integration", "event_name"], AggregatorOptions::default())
                    .expect("good dimensions");
            let body = body(number, &mut random);
            aggregator.push(body.as_bytes()).expect("a good body");
            aggregator.finish().expect("a good body")
        })
        .collect();
    CountTable::merge_all(&windows).expect("windows side by side")
}

fn body(number: i64, random: &mut Random) -> String {
    let hour = (number / 4) % 24;
    let busy = 4 + 4_u64.saturating_sub(hour.abs_diff(14) / 3);
    let (mut success, mut errors, mut entries) = (0, 0, String::new());
    for group in 0..INTEGRATIONS * EVENTS {
        let size = busy * (1 + group * group / 4_000);
        let delivered = size * 10 + random.below(1 + size);
        let failed = random.below(2 + size / 4);
        success += delivered;
        errors += failed;
        let (integration, event) = (group % INTEGRATIONS, group / INTEGRATIONS);
        let comma = if group == 0 { "" } else { "," };
        write!(
            entries,
            r#"{comma}{{"success":"{delivered}","errors":"{failed}","filtered":"0","dimensions":{{"integration":"Integration {integration}","event_name":"Event {event}"}}}}"#
        )
        .expect("text");
    }
    let window = window(number, number + 1);
    format!(
        r#"{{"start":"{}","end":"{}","totalDelivered":"{success}","totalErrors":"{errors}","totalFiltered":"0","counts":[{entries}]}}"#,
        window.start(),
        window.end()
    )
}

/// Leaves of four attributes in no order; one combination fails.
fn leaves() -> Leaves {
    const VALUES: [u64; 4] = [120, 60, 40, 12];
    let mut random = Random(13);
    let mut columns: [Vec<String>; 4] = Default::default();
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for _ in 0..LEAVES {
        let values = VALUES.map(|count| random.below(count));
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(format!("value {value}"));
        }
        let whole = 40 + random.below(60);
        let part = random.below(3);
        before.push(Tally { part, whole });
        let fails = values[0] == 1 && values[2] == 1;
        let part = if fails { whole / 2 } else { random.below(3) };
        now.push(Tally { part, whole });
    }
    let attributes = columns.iter().enumerate().map(|(number, texts)| {
        Attribute::of_texts(format!("attribute {number}"), texts).expect("a million values")
    });
    Leaves::new(attributes.collect(), before, now).expect("columns of the same length")
}
