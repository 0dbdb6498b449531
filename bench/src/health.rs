//! Measures what it costs to judge and to explain counts, compared with plain loops over the same sums.

use std::collections::HashMap;
use std::fmt::Write;
use std::hint::black_box;

use tallyfold::{Aggregator, AggregatorOptions, CountTable, Frame, Series, Timestamp, Window};
use tallyfold_health::{
    Attribute, ExplainOptions, Leaves, Measure, Observed, Rules, Tally, explain_leaves,
};

use crate::body::Random;
use crate::memory::{rest_peak, status};
use crate::report::{Measurement, Target, Unit};
use crate::rounds::take_turns;

/// The counts that are judged: 30 days in windows of 15 minutes, grouped by integration and event.
const WINDOWS: i64 = 2_880;
const INTEGRATIONS: u64 = 20;
const EVENTS: u64 = 60;
const START_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 900_000;

/// How many times as long as the plain loop judging and explaining may take, and the memory limit of judging in bytes.
const JUDGED_IN: f64 = 16.0;
const JUDGED_WITH: f64 = (64 << 20) as f64;
const EXPLAINED_IN: f64 = 8.0;

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
    let observed = Observed { delivery: Some(&table), ingestion: None };
    let judge = || rules.replay(&observed, range).expect("a replay").judged;
    let idle = rest_peak();
    let judged = judge();
    let used = status("VmHWM:") - idle;
    assert!(judged > 3_000_000, "{judged} windows of groups were judged");
    let work = "2,880 windows by 1,200 groups judged";
    let series = table.by_window(None).expect("windows of the responses");
    let ours = || {
        black_box(judge());
    };
    let theirs = || {
        black_box(plain_alerts(black_box(&series)));
    };
    compare(work, [&ours, &theirs], JUDGED_IN);
    Measurement {
        language: "Rust".to_owned(),
        work: format!("{work}, memory in addition to the table"),
        peer: "64 MiB".to_owned(),
        medians: [used, JUDGED_WITH],
        unit: Unit::Bytes,
        body_bytes: None,
        ratio: used / JUDGED_WITH,
        target: Some(Target::AtMost(1.0)),
    }
    .tell();
}

fn explaining() {
    let changed = leaves();
    let leaves = changed.leaves();
    let options = ExplainOptions::default();
    let ours = || {
        let found = explain_leaves(&leaves, Measure::ErrorRate, &options);
        assert_eq!(found.causes.len(), 1, "{}", found.sentence);
    };
    let theirs = || drop(black_box(plain_sums(black_box(&changed))));
    let work = "a change of 1,000,000 leaves explained";
    compare(work, [&ours, &theirs], EXPLAINED_IN);
}

fn compare(work: &str, contenders: [&dyn Fn(); 2], most: f64) {
    let times = take_turns(ROUNDS, 1, &contenders);
    Measurement {
        language: "Rust".to_owned(),
        work: work.to_owned(),
        peer: "a plain loop over the same sums".to_owned(),
        medians: [times.median(0), times.median(1)],
        unit: Unit::Seconds,
        body_bytes: None,
        ratio: times.ratio(0, 1),
        target: Some(Target::AtMost(most)),
    }
    .tell();
}

/// What people would write first: counts the windows of groups in which more than 5 % of the last hour's attempts failed.
fn plain_alerts(series: &Series) -> u64 {
    /// The last four windows of a group, as attempts and errors, and their sums.
    #[derive(Default)]
    struct Recent {
        windows: [[u64; 2]; 4],
        sums: [u64; 2],
        next: usize,
    }
    let mut groups: HashMap<(&str, &str), Recent> = HashMap::new();
    let counts = series.counts();
    let mut alerts = 0;
    for (row, (success, errors)) in series.rows().zip(counts.success().iter().zip(counts.errors()))
    {
        let mut values = row.values();
        let key = (values.next().expect("an integration"), values.next().expect("an event"));
        let recent = groups.entry(key).or_default();
        let window = [success + errors, *errors];
        for (place, count) in window.into_iter().enumerate() {
            recent.sums[place] += count;
            recent.sums[place] -= recent.windows[recent.next][place];
        }
        recent.windows[recent.next] = window;
        recent.next = (recent.next + 1) % recent.windows.len();
        let [attempts, failed] = recent.sums;
        alerts += u64::from(failed * 20 > attempts);
    }
    alerts
}

/// What people would write first: the sums of each value of each attribute, before and now.
fn plain_sums(changed: &Changed) -> Vec<HashMap<&str, [Tally; 2]>> {
    changed
        .columns
        .iter()
        .map(|column| {
            let mut sums: HashMap<&str, [Tally; 2]> = HashMap::new();
            let tallies = changed.before.iter().zip(&changed.now);
            for (value, (before, now)) in column.iter().zip(tallies) {
                let sum = sums.entry(value).or_insert([Tally { part: 0, whole: 0 }; 2]);
                for (sum, tally) in sum.iter_mut().zip([before, now]) {
                    sum.part += tally.part;
                    sum.whole += tally.whole;
                }
            }
            sums
        })
        .collect()
}

fn window(from: i64, until: i64) -> Window {
    let at = |number: i64| Timestamp::from_unix_ms(START_MS + number * STEP_MS).expect("a year");
    Window::new(at(from), at(until)).expect("a window")
}

/// Thirty days in windows. The groups differ in size and vary by the time of day.
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

/// Leaves of four attributes, with a column for each attribute, and the counts of two ranges.
struct Changed {
    columns: [Vec<String>; 4],
    before: Vec<Tally>,
    now: Vec<Tally>,
}

impl Changed {
    fn leaves(&self) -> Leaves {
        let attributes = self.columns.iter().enumerate().map(|(number, texts)| {
            Attribute::of_texts(format!("attribute {number}"), texts).expect("a million values")
        });
        Leaves::new(attributes.collect(), self.before.clone(), self.now.clone())
            .expect("columns of the same length")
    }
}

/// Leaves in random order. One combination of values fails in the second range.
fn leaves() -> Changed {
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
    Changed { columns, before, now }
}
