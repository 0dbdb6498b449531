//! Tables for tests, made from responses of the service, and their exports.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tallyfold::{
    Aggregator, AggregatorOptions, CountTable, Metric, Revision, Timestamp, Window, compare,
};
use tallyfold_export::{Export, ExportOptions, Format, Labels, Source};

/// 2026-01-01T00:00:00Z.
pub(crate) const DAY: i64 = 1_767_225_600;

/// The counts of each group in a window, by the values of its dimensions.
pub(crate) type Rows = BTreeMap<Vec<String>, [u64; 3]>;

/// The rows of each window, by its start and end in seconds since the beginning of the day.
pub(crate) type Windows = BTreeMap<(i64, i64), Rows>;

pub(crate) fn window((start, end): (i64, i64)) -> Window {
    let at = |seconds: i64| Timestamp::from_unix_ms((DAY + seconds) * 1000).unwrap();
    Window::new(at(start), at(end)).unwrap()
}

/// A table with a part for each window.
pub(crate) fn table(dimensions: &[&str], windows: &Windows) -> CountTable {
    let parts: Vec<CountTable> =
        windows.iter().map(|(window, rows)| part(dimensions, *window, rows)).collect();
    CountTable::merge_all(&parts).unwrap()
}

fn part(dimensions: &[&str], of: (i64, i64), rows: &Rows) -> CountTable {
    let sum = |count: usize| -> u64 { rows.values().map(|counts| counts[count]).sum() };
    let entries: Vec<_> = rows
        .iter()
        .map(|(values, [success, errors, filtered])| {
            let values: BTreeMap<_, _> = dimensions.iter().zip(values).collect();
            json!({"success": success.to_string(), "errors": errors.to_string(),
                "filtered": filtered.to_string(), "dimensions": values})
        })
        .collect();
    let body = json!({
        "start": window(of).start().to_string(), "end": window(of).end().to_string(),
        "totalDelivered": sum(0).to_string(), "totalErrors": sum(1).to_string(),
        "totalFiltered": sum(2).to_string(), "counts": entries,
    });
    let options = AggregatorOptions::default().metric(Metric::EventDelivery);
    let mut aggregator = Aggregator::new(dimensions, options).unwrap();
    aggregator.push(body.to_string().as_bytes()).unwrap();
    aggregator.finish().unwrap()
}

/// A revision of a window whose counts change from `before` to `after`.
pub(crate) fn revision(
    dimensions: &[&str],
    of: (i64, i64),
    before: &Rows,
    after: &Rows,
    settled: bool,
) -> Revision {
    let (before, after) = (part(dimensions, of, before), part(dimensions, of, after));
    Revision {
        window: window(of),
        changes: compare(&before, &after).unwrap(),
        table: after,
        settled,
        number: 0,
        clock_ahead_ms: 0,
    }
}

pub(crate) fn rows<const N: usize>(rows: &[([&str; N], [u64; 3])]) -> Rows {
    let owned = |values: &[&str; N]| values.iter().map(|value| (*value).to_owned()).collect();
    rows.iter().map(|(values, counts)| (owned(values), *counts)).collect()
}

/// Options with these labels. The clock shows 00:15:01.
pub(crate) fn options(format: Format, labels: &[(&str, &str)]) -> ExportOptions {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ExportOptions::with_defaults(format)
        .labels(Labels::new(labels).unwrap())
        .now_ms((DAY + 901) * 1000)
}

/// All pieces, each with at most `most` samples, and the number of samples in each.
pub(crate) fn pieces(
    source: impl Into<Source>,
    options: &ExportOptions,
    most: usize,
) -> Vec<(usize, String)> {
    let mut export = Export::new(source, options).unwrap();
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    while let Some(samples) = export.next_piece_of(most, &mut piece) {
        assert!(samples <= most);
        pieces.push((samples, String::from_utf8(piece.clone()).unwrap()));
    }
    pieces
}

/// The whole export as one text.
pub(crate) fn text(source: impl Into<Source>, options: &ExportOptions) -> String {
    let pieces = pieces(source, options, usize::MAX);
    pieces.into_iter().map(|(_, text)| text).collect()
}

/// A text of any characters. Characters that have a meaning in some format are more frequent.
pub(crate) fn any_value() -> impl Strategy<Value = String> {
    let special: Vec<char> =
        ",=\\ %|#@:;\"'`\n\r\t\0-_.+/a20%25\u{7f}\u{85}\u{2028}\u{feff}é🦀".chars().collect();
    let one = prop_oneof![any::<char>(), prop::sample::select(special)];
    prop::collection::vec(one, 0..12).prop_map(|all| all.into_iter().collect())
}

/// Windows of 5, 10 or 15 minutes, some of them with gaps of 5 minutes between them. Each has groups of two dimensions.
pub(crate) fn any_windows(windows: usize) -> impl Strategy<Value = Windows> {
    let count = prop_oneof![Just(0), 0..1000_u64, Just(1 << 53)];
    let counts = [count.clone(), count.clone(), count];
    prop::collection::vec(any_value(), 1..6).prop_flat_map(move |values| {
        let value = prop::sample::select(values);
        let rows =
            prop::collection::btree_map(prop::collection::vec(value, 2), counts.clone(), 0..6);
        prop::collection::vec((1..=3_i64, 0..2_i64, rows), 1..=windows).prop_map(|all| {
            let mut start = 0;
            let place = |(length, gap, rows): (i64, i64, Rows)| {
                let end = start + 300 * length;
                let of = (start, end);
                start = end + 300 * gap;
                (of, rows)
            };
            all.into_iter().map(place).collect()
        })
    })
}
