//! Series are the tables that they are made of, cut by time: nothing is lost, and nothing added.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so when it fails"
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tallyfold::{CountTable, Counts, Series, TimeStep, Timestamp, Window};

/// 2025-12-31T21:00:00Z, in minutes, so that tables reach over midnight.
const START: i64 = 29_453_580;

/// Values that have a common start, are empty, or sort otherwise by UTF-16 than by UTF-8.
const VALUES: [&str; 7] = ["", "a", "aa", "b", "ключ", "\u{ffee}", "😀"];

/// A response: a gap before it and its length, both in minutes, and its rows.
type Response = (i64, i64, BTreeMap<(usize, usize), [u64; 3]>);

/// Responses in the order of time, all of whose sums fit.
fn responses() -> impl Strategy<Value = Vec<Response>> {
    let lengths = prop::sample::select(vec![1, 5, 5, 5, 10, 15, 15, 30, 60]);
    let gaps = prop::sample::select(vec![0, 0, 0, 5, 15, 60, 1_440]);
    let rows = prop::collection::btree_map(
        (0..VALUES.len(), 0..VALUES.len()),
        prop::array::uniform3(prop_oneof![Just(0), 0..9_u64, 0..1_u64 << 56]),
        0..8,
    );
    prop::collection::vec((gaps, lengths, rows), 1..12)
}

fn minute(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms((START + minute) * 60_000).expect("a year of four digits")
}

/// The tables of responses, each of one window.
fn tables(responses: &[Response]) -> Vec<CountTable> {
    let mut now = 0;
    let table = |(gap, length, rows): &Response| {
        let (start, end) = (now + gap, now + gap + length);
        now = end;
        let totals = rows.values().fold([0; 3], |sum: [u64; 3], counts| {
            [sum[0] + counts[0], sum[1] + counts[1], sum[2] + counts[2]]
        });
        let digits = |[success, errors, filtered]: [u64; 3]| {
            json!({
                "success": success.to_string(),
                "errors": errors.to_string(),
                "filtered": filtered.to_string(),
            })
        };
        let row = |((key, integration), counts): (&(usize, usize), &[u64; 3])| {
            let mut row = digits(*counts);
            row["values"] = json!([VALUES[*key], VALUES[*integration]]);
            row
        };
        let saved = json!({
            "format": "tallyfold-table/1", "metric": null, "filter": [],
            "dimensions": ["write_key", "integration"], "totals": digits(totals),
            "windows": [{
                "start": minute(start).to_string(), "end": minute(end).to_string(),
                "reported": null, "notes": {"repeated_combinations": 0, "null_dimensions": 0},
                "rows": rows.iter().map(row).collect::<Vec<_>>(),
            }],
        });
        CountTable::from_json(saved.to_string().as_bytes()).expect("a good table")
    };
    responses.iter().map(table).collect()
}

fn merged(mut tables: Vec<CountTable>, turn: usize) -> CountTable {
    let turn = turn % tables.len();
    tables.rotate_left(turn);
    let mut tables = tables.into_iter();
    let first = tables.next().expect("at least one");
    tables.fold(first, |sum, table| {
        sum.merge(&table, false).expect("different times")
    })
}

type Sums = BTreeMap<Vec<String>, Counts>;

fn add(sums: &mut Sums, values: Vec<String>, counts: Counts) {
    let sum = sums.entry(values).or_default();
    sum.success += counts.success;
    sum.errors += counts.errors;
    sum.filtered += counts.filtered;
}

fn sums_of(table: &CountTable) -> Sums {
    let mut sums = Sums::new();
    for row in table.rows() {
        add(
            &mut sums,
            row.values().map(str::to_owned).collect(),
            row.counts(),
        );
    }
    sums
}

fn sums_over_windows(series: &Series, inside: impl Fn(Window) -> bool) -> Sums {
    let mut sums = Sums::new();
    for row in series.rows().filter(|row| inside(row.window())) {
        add(
            &mut sums,
            row.values().map(str::to_owned).collect(),
            row.counts(),
        );
    }
    sums
}

fn step() -> impl Strategy<Value = TimeStep> {
    let texts = prop::sample::select(vec!["1m", "5m", "15m", "30m", "1h", "3h", "1d"]);
    texts.prop_map(|text| TimeStep::parse(text).expect("a good step"))
}

fn check_order(series: &Series) {
    let keys: Vec<(u32, Vec<&str>)> = series
        .rows()
        .map(|row| (series.window_ids()[row.index()], row.values().collect()))
        .collect();
    assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    let windows = series.windows();
    assert!(windows.is_sorted_by(|one, other| one.window.end() <= other.window.start()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn each_window_keeps_its_response(responses in responses(), turn in 0..12_usize) {
        let tables = tables(&responses);
        let table = merged(tables.clone(), turn);
        let series = table.by_window(None).expect("no step");
        check_order(&series);
        let windows: Vec<Window> = series.windows().iter().map(|of| of.window).collect();
        prop_assert_eq!(windows, table.windows());
        prop_assert!(series.windows().iter().all(|of| of.complete));
        for one in &tables {
            let found = sums_over_windows(&series, |window| window == one.windows()[0]);
            prop_assert_eq!(found, sums_of(one));
        }
        prop_assert_eq!(sums_over_windows(&series, |_| true), sums_of(&table));
        prop_assert_eq!(series.totals(), table.totals());
    }

    #[test]
    fn steps_add_up_to_the_table(responses in responses(), turn in 0..12_usize, step in step()) {
        let tables = tables(&responses);
        let table = merged(tables.clone(), turn);
        let fits = |table: &CountTable| {
            let window = table.windows()[0];
            step.after(window.start()).is_some_and(|end| window.end() <= end)
        };
        let Ok(series) = table.by_window(Some(step)) else {
            prop_assert!(!tables.iter().all(fits));
            return Ok(());
        };
        prop_assert!(tables.iter().all(fits));
        check_order(&series);
        prop_assert_eq!(sums_over_windows(&series, |_| true), sums_of(&table));
        for bucket in series.windows() {
            let (start, end) = (bucket.window.start(), bucket.window.end());
            prop_assert_eq!((step.floor(start), step.after(start)), (start, Some(end)));
            let inside: Vec<CountTable> = tables
                .iter()
                .filter(|table| bucket.window.contains(table.windows()[0]))
                .cloned()
                .collect();
            let alone = merged(inside, 0);
            prop_assert_eq!(bucket.complete, alone.coverage() == [bucket.window]);
            let found = sums_over_windows(&series, |window| window == bucket.window);
            prop_assert_eq!(found, sums_of(&alone));
        }
    }

    #[test]
    fn a_series_of_a_group_is_the_group_of_a_series(responses in responses(), step in step()) {
        let table = merged(tables(&responses), 0);
        let Ok(series) = table.by_window(Some(step)) else { return Ok(()) };
        let grouped = table.group_by(&["integration"]).expect("a dimension of the table");
        let grouped = grouped.by_window(Some(step)).expect("the same windows");
        for bucket in series.windows() {
            let mut sums = Sums::new();
            for (values, counts) in sums_over_windows(&series, |window| window == bucket.window) {
                add(&mut sums, values[1..].to_vec(), counts);
            }
            prop_assert_eq!(sums_over_windows(&grouped, |window| window == bucket.window), sums);
        }
    }
}
