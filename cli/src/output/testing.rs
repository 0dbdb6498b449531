//! Counts and reports for tests.

use std::sync::Arc;

use serde_json::{Value, json};
use tallyfold::{
    Comparison, CountTable, Metric, Reconciliation, Series, TimeStep, Window, compare,
};

use super::report::{Asked, Counted, Part, Report};
use super::show::ShowFlags;

/// A row: the integration, success, errors and filtered.
pub(crate) type Row<'a> = (&'a str, u64, u64, u64);

/// Rows of an ordinary table.
pub(crate) const ROWS: &[Row<'static>] = &[
    ("", 5, 0, 1),
    ("A very long name of an integration that somebody has made up in a hurry", 12, 3, 0),
    ("Warehouse", 1_234_567, 12_345, 678),
    ("Webhooks", 999_999_999, 1, 0),
    ("日本語のデータ", 0, 0, 42),
];

/// Rows with the largest counts.
pub(crate) const BIG: &[Row<'static>] = &[("Warehouse", 18_446_744_073_709_551_615, 1_000, 0)];

/// Rows with hostile values.
pub(crate) const HOSTILE: &[Row<'static>] = &[
    ("\x1b[2J\x1b[1;31mred", 1, 0, 0),
    ("a\nb\tc\r\0", 1, 0, 0),
    ("back\\slash", 1, 0, 0),
    ("e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}", 1, 0, 0),
    ("right\u{202e}to left", 1, 0, 0),
    ("\u{9b}31m", 1, 0, 0),
    ("👩\u{200d}🚀", 1, 0, 0),
];

/// Returns the window of one hour on 1 January 2026 that begins at `hour`.
pub(crate) fn hour(hour: usize) -> Window {
    let instant = |hour: usize| format!("2026-01-01T{hour:02}:00:00Z");
    Window::parse(&instant(hour), &instant(hour + 1)).unwrap()
}

fn counts(row: [u64; 3]) -> Value {
    let [success, errors, filtered] = row.map(|count| count.to_string());
    json!({"success": success, "errors": errors, "filtered": filtered})
}

/// Creates a table with one window for each list of rows. The flag of each list is true if its window is provisional. `excess`
/// is added to the errors that the service reports, so that they differ from the sums.
fn saved(windows: &[(&[Row<'_>], bool)], excess: u64) -> CountTable {
    saved_from(0, windows, excess)
}

/// Creates the same table, with its first window at the hour `first`.
fn saved_from(first: usize, windows: &[(&[Row<'_>], bool)], excess: u64) -> CountTable {
    let all = windows.iter().flat_map(|(rows, _)| *rows);
    let saved = json!({
        "format": "tallyfold-table/1",
        "metric": "event_delivery",
        "dimensions": ["integration"],
        "filter": [],
        "totals": counts(sum(all)),
        "windows": windows.iter().enumerate().map(|(place, (rows, is_provisional))| {
            saved_window(hour(first + place), rows, *is_provisional, excess)
        }).collect::<Vec<Value>>(),
    });
    CountTable::from_json(saved.to_string().as_bytes()).unwrap()
}

fn saved_window(window: Window, rows: &[Row<'_>], is_provisional: bool, excess: u64) -> Value {
    let [success, errors, filtered] = sum(rows.iter());
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    let rows = rows.iter().map(|row| {
        let mut of = counts([row.1, row.2, row.3]);
        of["values"] = json!([row.0]);
        of
    });
    let mut saved = json!({
        "start": window.start().to_string(),
        "end": window.end().to_string(),
        "reported": counts([success, errors + excess, filtered]),
        "notes": {"repeated_combinations": 0, "null_dimensions": 0},
        "rows": rows.collect::<Vec<_>>(),
    });
    if is_provisional {
        saved["provisional"] = true.into();
    }
    saved
}

fn sum<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> [u64; 3] {
    rows.fold([0; 3], |sum, row| [sum[0] + row.1, sum[1] + row.2, sum[2] + row.3])
}

/// Creates a table of one hour.
pub(crate) fn table(rows: &[Row<'_>]) -> CountTable {
    saved(&[(rows, false)], 0)
}

/// Creates a table of several hours.
pub(crate) fn hours(windows: &[&[Row<'_>]]) -> CountTable {
    let windows: Vec<_> = windows.iter().map(|rows| (*rows, false)).collect();
    saved(&windows, 0)
}

/// Creates a table for each hour.
pub(crate) fn each_hour(windows: &[&[Row<'_>]]) -> Vec<(Window, CountTable)> {
    let windows = windows.iter().enumerate();
    let tables = windows.map(|(place, rows)| (hour(place), saved_from(place, &[(rows, false)], 0)));
    tables.collect()
}

/// Creates a table whose counts may still change.
pub(crate) fn provisional_table(rows: &[Row<'_>]) -> CountTable {
    saved(&[(rows, true)], 0)
}

/// Creates a table of two hours; the counts of the second one may still change.
pub(crate) fn partly_provisional(settled: &[Row<'_>], provisional: &[Row<'_>]) -> CountTable {
    saved(&[(settled, false), (provisional, true)], 0)
}

/// Creates a table whose reported totals differ from the sums of its counts.
pub(crate) fn unbalanced_table() -> CountTable {
    saved(&[(&[("Warehouse", 20, 1, 0)], false)], 7)
}

/// Creates a series with a step of one hour.
pub(crate) fn series(windows: &[&[Row<'_>]]) -> Arc<Series> {
    let step = TimeStep::parse("1h").unwrap();
    Arc::new(hours(windows).by_window(Some(step)).unwrap())
}

/// Creates a comparison with every kind of row.
pub(crate) fn change() -> Arc<Comparison> {
    let before = table(&[("Old", 7, 3, 1), ("Quiet", 5, 0, 0), ("Warehouse", 1_000, 10, 0)]);
    let after = table(&[("New", 2, 60, 0), ("Quiet", 5, 0, 0), ("Warehouse", 1_200, 500, 0)]);
    Arc::new(compare(&before, &after).unwrap())
}

pub(crate) fn report_of(parts: Vec<(&str, Counted)>) -> Report {
    let compares = parts.iter().any(|(_, counts)| matches!(counts, Counted::Comparison(_)));
    let parts = parts.into_iter().map(|(cluster, counts)| Part {
        cluster: cluster.to_owned(),
        labels: Vec::new(),
        provisional: counts.provisional(),
        reconciliation: match &counts {
            Counted::Table(table) => table.reconciliation(),
            _ => Reconciliation::Unavailable,
        },
        found: counts,
        gaps: Vec::new(),
        failure: None,
        is_unanswered: false,
    });
    Report {
        asked: Asked {
            metric: Metric::EventDelivery,
            by: vec![tallyfold::Dimension::Integration],
            only: Vec::new(),
            range: hour(0),
            before: compares.then(|| hour(22)),
            settle_ms: 3_600_000,
        },
        parts: parts.collect(),
        missing: Vec::new(),
        is_named: false,
    }
}

/// Creates a report of two clusters with names.
pub(crate) fn named_pair() -> Report {
    let one = table(&[("a", 1, 5, 0), ("b", 2, 1, 0)]);
    let other = table(&[("a", 3, 3, 0), ("c", 4, 9, 0)]);
    let mut report = report_of(vec![("eu", Counted::Table(one)), ("us", Counted::Table(other))]);
    report.is_named = true;
    report
}

/// Parses the output flags of a command line.
pub(crate) fn show(flags: &[&str]) -> ShowFlags {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        show: ShowFlags,
    }
    let line = std::iter::once("test").chain(flags.iter().copied());
    <Line as clap::Parser>::parse_from(line).show
}

/// Compares a text with a file in `snapshots/`. With `SNAPSHOTS=overwrite` in the environment, writes the file instead.
pub(crate) fn assert_drawn(text: String, file: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/output/snapshots/");
    let path = std::path::Path::new(folder).join(file);
    snapbox::assert_data_eq!(text, snapbox::Data::read_from(&path, None).raw());
}
