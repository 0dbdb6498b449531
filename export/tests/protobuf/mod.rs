//! Random tables and revisions, and what their exports must contain.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use tallyfold::{CountTable, Revision, Timestamp, Window, compare};
use tallyfold_export::{Export, ExportOptions, Format, Labels, Source};

/// 2026-01-01T00:00:00Z.
pub(crate) const START_MS: i64 = 1_767_225_600_000;
const QUARTER_MS: i64 = 900_000;

/// The names of the counts, in their order.
pub(crate) const COUNTS: [&str; 3] = ["success", "errors", "filtered"];

/// The samples that a reader must find, by the metric's name, its labels, and the start of the window in milliseconds.
pub(crate) type Samples = BTreeMap<(String, BTreeMap<String, String>, i64), i128>;

/// Consecutive windows of 15 minutes. Each row has the values of integration and reason, and their counts.
pub(crate) type Windows = Vec<BTreeMap<(String, String), [u64; 3]>>;

/// A label's value: any Unicode text, often an empty one.
pub(crate) fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("a".to_owned()),
        prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
        "[\"\\\\\n\r\t\u{0}\u{7f}\u{2028}{},=#]{1,4}",
    ]
}

pub(crate) fn windows(most: u64) -> impl Strategy<Value = Windows> {
    let counts = prop::array::uniform3(prop_oneof![Just(0), 0..9_u64, 0..=most]);
    let rows = prop::collection::btree_map((value(), value()), counts, 0..6);
    prop::collection::vec(rows, 1..6)
}

/// Labels of the caller. Some of them come before `__name__` in the order of bytes, some after it.
pub(crate) fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let name = prop::sample::select(vec!["Cluster", "_", "_A", "_a", "cluster", "zone", "Z9"]);
    prop::collection::btree_map(name.prop_map(str::to_owned), value(), 0..4)
}

pub(crate) fn options(format: Format, labels: &BTreeMap<String, String>) -> ExportOptions {
    ExportOptions::with_defaults(format).labels(Labels::new(labels.clone()).expect("good names"))
}

pub(crate) fn window(position: usize) -> Window {
    let at = |position: usize| {
        Timestamp::from_unix_ms(START_MS + position as i64 * QUARTER_MS).expect("a good instant")
    };
    Window::new(at(position), at(position + 1)).expect("a good window")
}

/// A table of consecutive windows. `first` is the position of the first one.
pub(crate) fn table_from(
    first: usize,
    windows: &[BTreeMap<(String, String), [u64; 3]>],
) -> CountTable {
    let digits = |[success, errors, filtered]: [u64; 3]| {
        json!({
            "success": success.to_string(),
            "errors": errors.to_string(),
            "filtered": filtered.to_string(),
        })
    };
    let sum = |rows: &BTreeMap<_, [u64; 3]>| {
        rows.values()
            .fold([0_u64; 3], |sum, counts| std::array::from_fn(|count| sum[count] + counts[count]))
    };
    let tables: Vec<CountTable> = windows
        .iter()
        .enumerate()
        .map(|(position, rows)| {
            let window = window(first + position);
            let row = |((integration, reason), counts): (&(String, String), &[u64; 3])| {
                let mut row = digits(*counts);
                row["values"] = json!([integration, reason]);
                row
            };
            let saved = json!({
                "format": "tallyfold-table/1", "metric": "event_delivery", "filter": [],
                "dimensions": ["integration", "reason"], "totals": digits(sum(rows)),
                "windows": [{
                    "start": window.start().to_string(), "end": window.end().to_string(),
                    "reported": null, "notes": {"repeated_combinations": 0, "null_dimensions": 0},
                    "rows": rows.iter().map(row).collect::<Vec<_>>(),
                }],
            });
            CountTable::from_json(saved.to_string().as_bytes()).expect("a good table")
        })
        .collect();
    CountTable::merge_all(&tables).expect("adjacent windows")
}

pub(crate) fn table(windows: &Windows) -> CountTable {
    table_from(0, windows)
}

/// A revision of the first window. Its counts change from the rows of the first of these windows to the rows of the last one.
pub(crate) fn revision(windows: &Windows) -> Revision {
    let last = windows.last().expect("a window");
    let (before, after) = (table_from(0, &windows[..1]), table_from(0, std::slice::from_ref(last)));
    Revision {
        window: window(0),
        changes: compare(&before, &after).expect("tables of one shape"),
        table: after,
        settled: false,
        number: 0,
        clock_ahead_ms: 0,
    }
}

fn labels_of(
    own: &BTreeMap<String, String>,
    (integration, reason): &(String, String),
) -> BTreeMap<String, String> {
    let mut labels = own.clone();
    labels.insert("integration".to_owned(), integration.clone());
    labels.insert("reason".to_owned(), reason.clone());
    // A label with an empty value is left out.
    labels.retain(|_, value| !value.is_empty());
    labels
}

/// All samples of a table.
pub(crate) fn samples(
    windows: &Windows,
    own: &BTreeMap<String, String>,
    name: impl Fn(&str) -> String,
) -> Samples {
    let mut samples = Samples::new();
    for (position, rows) in windows.iter().enumerate() {
        for (values, counts) in rows {
            for (count, number) in COUNTS.iter().zip(counts) {
                let start = window(position).start().unix_ms();
                let key = (name(count), labels_of(own, values), start);
                samples.insert(key, i128::from(*number));
            }
        }
    }
    samples
}

/// All samples of a revision: the changes that are not 0.
pub(crate) fn changes(
    windows: &Windows,
    own: &BTreeMap<String, String>,
    name: impl Fn(&str) -> String,
) -> Samples {
    let (before, after) = (&windows[0], &windows[windows.len() - 1]);
    let mut samples = Samples::new();
    for values in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let of = |rows: &BTreeMap<_, [u64; 3]>| rows.get(values).copied().unwrap_or_default();
        for (position, count) in COUNTS.iter().enumerate() {
            let change = i128::from(of(after)[position]) - i128::from(of(before)[position]);
            if change != 0 {
                let mut labels = labels_of(own, values);
                labels.insert("revision".to_owned(), "0".to_owned());
                samples.insert((name(count), labels, START_MS), change);
            }
        }
    }
    samples
}

/// All pieces, each with at most `most` samples.
pub(crate) fn pieces(
    source: impl Into<Source>,
    options: &ExportOptions,
    most: usize,
) -> Vec<Vec<u8>> {
    let mut export = Export::new(source, options).expect("an export");
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    while let Some(written) = export.next_piece_of(most, &mut piece) {
        assert!((1..=most).contains(&written));
        pieces.push(piece.clone());
    }
    pieces
}

/// A field of a message, read by its wire type alone.
#[derive(Debug, PartialEq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    pub(crate) fn number(self) -> u64 {
        let Self::Number(number) = self else {
            panic!("{self:?} is no number");
        };
        number
    }

    pub(crate) fn float(self) -> f64 {
        let Self::Fixed(bits) = self else {
            panic!("{self:?} is no float");
        };
        f64::from_bits(bits)
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else {
            panic!("{self:?} is no bytes");
        };
        bytes
    }

    pub(crate) fn text(self) -> &'a str {
        std::str::from_utf8(self.bytes()).expect("UTF-8")
    }
}

/// Parses a protobuf message without its schema. Returns the number of each field and its content.
pub(crate) fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => {
                let (fixed, rest) = message.split_first_chunk().expect("eight bytes");
                message = rest;
                Field::Fixed(u64::from_le_bytes(*fixed))
            }
            2 => {
                let length = varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in 0..10 {
        let (byte, rest) = message.split_first().expect("a byte");
        *message = rest;
        number |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return number;
        }
    }
    panic!("a varint has at most ten bytes");
}

/// Reads a packed list of varints.
pub(crate) fn varints(mut packed: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !packed.is_empty() {
        numbers.push(varint(&mut packed));
    }
    numbers
}
