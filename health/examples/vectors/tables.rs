//! The counts of the vectors.

use serde_json::{Value, json};
use tallyfold::{Aggregator, AggregatorOptions, CountTable, Frame, Metric};

/// Counts of a group: values, success, errors and filtered.
type Row<'a> = (&'a [&'a str], [u64; 3]);

/// All tables by name.
pub(crate) fn all() -> Vec<(&'static str, CountTable)> {
    let by_three = ["event_name", "write_key", "integration"];
    let one = |rows: &[Row<'_>]| day(Metric::EventDelivery, &["integration"], 0, rows, None);
    vec![
        ("before", combinations(&by_three, 0, &|_, _, _| [900, 4, 6])),
        (
            "integration fails",
            combinations(&by_three, 1, &|event, key, to| {
                let is_bad = to == 2 || (event == 1 && key == 0);
                if is_bad { [400, 520, 6] } else { [900 + event, 3 + key, 6] }
            }),
        ),
        (
            "Mail fails",
            combinations(&by_three, 1, &|event, key, to| match to {
                2 => [700 - event, 210 + key, 6],
                _ => [900 - event, 3 + key, 6 + key],
            }),
        ),
        ("everything fails", combinations(&by_three, 1, &|_, _, _| [500, 404, 6])),
        ("nothing", one(&[])),
        ("odd", one(&[(&["a \"b\"\\\n\u{1f980}"], [7, 1, 0]), (&[""], [1, 0, 0])])),
        ("huge", one(&[(&["a"], [u64::MAX - 9, 9, 0])])),
        ("reasons before", reasons(0)),
        ("reasons now", reasons(400)),
        ("delivery", history()),
        ("fresh delivery", fresh(&history(), 2)),
        ("ingestion", ingestion()),
    ]
}

/// The table of that name.
pub(crate) fn table(name: &str) -> CountTable {
    let found = all().into_iter().find(|(own, _)| *own == name);
    found.expect("a table of that name").1
}

/// A day whose counts depend on the positions of the three values.
fn combinations(
    dimensions: &[&str],
    number: u64,
    counts: &dyn Fn(u64, u64, u64) -> [u64; 3],
) -> CountTable {
    let events = ["Order Completed", "Page Viewed", "Sign Up"];
    let (keys, integrations) = (["android", "web"], ["Amazon S3", "CRM", "Mail", "Warehouse"]);
    let mut rows = Vec::new();
    for (event, event_name) in (0..).zip(events) {
        for (key, write_key) in (0..).zip(keys) {
            for (to, integration) in (0..).zip(integrations) {
                rows.push(([event_name, write_key, integration], counts(event, key, to)));
            }
        }
    }
    let rows: Vec<Row<'_>> = rows.iter().map(|(values, counts)| (&values[..], *counts)).collect();
    day(Metric::EventDelivery, dimensions, number, &rows, None)
}

/// A day with reasons, one of which filters more.
fn reasons(more: u64) -> CountTable {
    let rows: [Row<'_>; 4] = [
        (&["CRM", ""], [1_000 - more, 3, 0]),
        (&["CRM", "consent"], [0, 0, 20 + more]),
        (&["Mail", ""], [1_000, 3, 0]),
        (&["Mail", "quota"], [0, 0, 20]),
    ];
    day(Metric::EventDelivery, &["integration", "reason"], 0, &rows, None)
}

/// The days of the history.
const DAYS: u64 = 50;

/// A number below another one, which looks like chance.
fn chance(seed: u64, below: u64) -> u64 {
    let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// Seven weeks and a day of delivery by integration and reason. In the end CRM fails for two days, the quota filters, Mail
/// gets nothing, a new reason comes, and a total is off.
fn history() -> CountTable {
    let days = (0..DAYS).map(|number| {
        let weekend = if number % 7 > 4 { 300 } else { 0 };
        let some = |place: u64, around: u64| around - weekend + chance(number * 8 + place, 60);
        let few = |place: u64| chance(number * 8 + place + 1_000, 9);
        let is_bad = (44..46).contains(&number);
        let failed = if is_bad { 450 } else { 0 };
        let quota = if number == 46 { 380 } else { 0 };
        let mut rows: Vec<Row<'_>> = vec![
            (&["CRM", ""], [some(0, 1_000) - failed, few(0) + failed, 0]),
            (&["CRM", "quota"], [0, 0, few(1) + quota]),
            (&["Warehouse", ""], [some(2, 2_000), few(2), 0]),
        ];
        if !(47..49).contains(&number) {
            rows.push((&["Mail", ""], [some(3, 600), few(3), 0]));
        }
        if number == 49 {
            rows.push((&["CRM", "consent"], [0, 0, 12]));
        }
        let off = (number == 48).then_some([7, 0, 0]);
        day(Metric::EventDelivery, &["integration", "reason"], number, &rows, off)
    });
    CountTable::merge_all(&days.collect::<Vec<_>>()).expect("adjacent days")
}

/// The same days of ingestion by write key, of which one has no delivery.
fn ingestion() -> CountTable {
    let days = (0..DAYS).map(|number| {
        let count = 3_000 + chance(number + 5_000, 90);
        let rows: [Row<'_>; 1] = [(&["web"], [count, 0, 0])];
        day(Metric::EventIngestion, &["write_key"], number, &rows, None)
    });
    CountTable::merge_all(&days.collect::<Vec<_>>()).expect("adjacent days")
}

/// The same table whose last days may still change.
fn fresh(table: &CountTable, days: usize) -> CountTable {
    let mut saved: Value = serde_json::from_str(&table.to_json()).expect("JSON");
    saved["format"] = "tallyfold-table/1".into();
    saved["digest"] = Value::Null;
    let windows = saved["windows"].as_array_mut().expect("windows");
    for window in windows.iter_mut().rev().take(days) {
        window["provisional"] = true.into();
    }
    CountTable::from_json(saved.to_string().as_bytes()).expect("a table")
}

/// The counts of a day, and by how much the reported totals differ from their sums.
fn day(
    metric: Metric,
    dimensions: &[&str],
    number: u64,
    rows: &[Row<'_>],
    off: Option<[u64; 3]>,
) -> CountTable {
    let counts = rows.iter().map(|(values, [success, errors, filtered])| {
        let named = dimensions.iter().zip(*values);
        let named = named.map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        json!({
            "success": success.to_string(),
            "errors": errors.to_string(),
            "filtered": filtered.to_string(),
            "dimensions": named.collect::<serde_json::Map<_, _>>(),
        })
    });
    let total = |at: usize| {
        let sum: u64 = rows.iter().map(|(_, counts)| counts[at]).sum();
        (sum + off.map_or(0, |off| off[at])).to_string()
    };
    let body = json!({
        "start": instant(number),
        "end": instant(number + 1),
        "totalDelivered": total(0),
        "totalErrors": total(1),
        "totalFiltered": total(2),
        "counts": counts.collect::<Vec<_>>(),
    });
    let options = AggregatorOptions::default().metric(metric);
    let mut aggregator = Aggregator::new(dimensions, options).expect("dimensions");
    aggregator.push(body.to_string().as_bytes()).expect("a response");
    aggregator.finish().expect("a response")
}

/// The start of a day, from January 5, 2026 on, which is a Monday.
pub(crate) fn instant(number: u64) -> String {
    let (month, day) = match number + 5 {
        day @ ..=31 => (1, day),
        day @ ..=59 => (2, day - 31),
        day => (3, day - 59),
    };
    format!("2026-{month:02}-{day:02}T00:00:00Z")
}
