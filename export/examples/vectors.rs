//! Writes `tests/vectors/exports.json`: exports of a few counts in every format, with the exact bytes. Every language
//! must produce the same bytes. With `--check`, it writes nothing, and fails if the file is stale.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a tool of the project, which stops where something is wrong"
)]

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tallyfold::{
    Aggregator, AggregatorOptions, CountTable, Frame, Metric, Revision, TimeStep, compare,
};
use tallyfold_export::{Export, ExportOptions, Format, Labels, Source, Windows};

/// Values that at least one format must escape.
const ODD: [&str; 6] = [
    "",
    "plain",
    "a \"quote\", a \\ and a, comma",
    "two\nlines\tand = # | @ : %",
    "Zürich 🦀",
    "\u{7f} é",
];

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/exports.json");
    let text = text();
    if std::env::args().any(|argument| argument == "--check") {
        let is_fresh = std::fs::read_to_string(&path).is_ok_and(|now| now == text);
        assert!(
            is_fresh,
            "exports.json is stale: run cargo run -p tallyfold-export --example vectors"
        );
    } else {
        std::fs::write(path, text).expect("a file that can be written");
    }
}

/// The contents of the file: the tables by name, and one case per line.
fn text() -> String {
    let tables = tables().map(|(name, table)| {
        let saved: Value = serde_json::from_str(&table.to_json()).expect("the JSON of a table");
        format!("    {}: {saved}", json!(name))
    });
    let cases = cases();
    let count = cases.len();
    let cases = cases.iter().map(|case| format!("    {case}"));
    format!(
        "{{\n  \"count\": {count},\n  \"tables\": {{\n{}\n  }},\n  \"cases\": [\n{}\n  ]\n}}\n",
        tables.join(",\n"),
        cases.collect::<Vec<_>>().join(",\n")
    )
}

fn tables() -> [(&'static str, CountTable); 6] {
    let merged = |tables: [CountTable; 2]| CountTable::merge_all(&tables).expect("two windows");
    [
        ("odd", merged([window(0, 1), window(1, 3)])),
        ("with a gap", merged([window(0, 1), window(2, 2)])),
        ("before", window(0, 5)),
        ("after", window(0, 2)),
        ("single", counted(0, &[("plain", [7, 1, 0])])),
        ("huge", counted(0, &[("plain", [u64::MAX, 0, 0])])),
    ]
}

fn table(name: &str) -> CountTable {
    let found = tables().into_iter().find(|(own, _)| *own == name);
    found.expect("a table of that name").1
}

fn cases() -> Vec<Value> {
    let step = TimeStep::parse("1h").expect("a step");
    let (odd, single, huge) =
        (Counts::Table("odd"), Counts::Table("single"), Counts::Table("huge"));
    let mut cases = Vec::new();
    for format in Format::ALL {
        let mut add = |what: &str, counts: &Counts, options: Options| {
            let name = format!("{format}: {what}");
            cases.push(case(&name, *format, counts, &options));
        };
        let labels = [("cluster", "a \"b\"\n"), ("zone", "")];
        let labelled = || Options { labels: labels.to_vec(), ..Options::default() };
        add("a table", &odd, Options::default());
        add("a table with labels", &odd, labelled());
        add("a series", &Counts::Series("odd", step), labelled());
        add("a revision", &Counts::Revision(true), labelled());
        let early = Counts::Revision(false);
        add("a revision that is not the last", &early, Options::default());
        let name = Some("own_name");
        let named = Options { name, ..Options::default() };
        add("a name", &single, named);
        let small = Options { max_bytes: Some(600), ..Options::default() };
        add("small pieces", &odd, small);
        add("a huge count", &huge, Options::default());
        let exact = Options { exact: true, ..Options::default() };
        add("a huge count, exactly", &huge, exact);
        let own = Options { labels: vec![("integration", "x")], ..Options::default() };
        add("a label that is a dimension", &single, own);
    }
    for (what, windows) in [
        ("settled", None),
        ("settled, as asked", Some(Windows::Settled)),
        ("all", Some(Windows::All)),
    ] {
        for format in [Format::OpenMetrics, Format::RemoteWrite, Format::Csv] {
            let options = Options { windows, ..Options::default() };
            let counts = Counts::Series("with a gap", step);
            let name = format!("{format}: windows that are {what}");
            cases.push(case(&name, format, &counts, &options));
        }
    }
    cases
}

/// What is exported.
enum Counts {
    Table(&'static str),
    Series(&'static str, TimeStep),
    /// The changes from "before" to "after". The flag says whether this is the last revision.
    Revision(bool),
}

#[derive(Default)]
struct Options {
    labels: Vec<(&'static str, &'static str)>,
    name: Option<&'static str>,
    windows: Option<Windows>,
    exact: bool,
    max_bytes: Option<usize>,
}

fn case(name: &str, format: Format, counts: &Counts, options: &Options) -> Value {
    let (given, source): (Value, Source) = match counts {
        Counts::Table(name) => (json!({ "table": name }), (&table(name)).into()),
        Counts::Series(name, step) => {
            let series = table(name).by_window(Some(*step)).expect("aligned windows");
            let given = json!({ "table": name, "step": step.to_string() });
            (given, (&Arc::new(series)).into())
        }
        Counts::Revision(settled) => {
            let revision =
                Revision { settled: *settled, ..revision(&table("before"), &table("after")) };
            let given = json!({
                "before": "before",
                "after": "after",
                "number": revision.number,
                "settled": revision.settled,
            });
            (given, (&revision).into())
        }
    };
    let mut arguments = Map::new();
    arguments.insert("format".to_owned(), format.as_str().into());
    if !options.labels.is_empty() {
        let labels = options.labels.iter();
        let labels: Map<String, Value> =
            labels.map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        arguments.insert("labels".to_owned(), labels.into());
    }
    if let Some(name) = options.name {
        arguments.insert("name".to_owned(), name.into());
    }
    if let Some(windows) = options.windows {
        arguments.insert("windows".to_owned(), windows.as_str().into());
    }
    if options.exact {
        arguments.insert("exact".to_owned(), true.into());
    }
    if let Some(max_bytes) = options.max_bytes {
        arguments.insert("max_bytes".to_owned(), max_bytes.into());
    }
    let expected = expected(source, format, options);
    let mut case = json!({ "name": name, "given": given, "options": arguments });
    if let (Value::Object(case), Value::Object(expected)) = (&mut case, expected) {
        case.extend(expected);
    }
    case
}

fn expected(source: Source, format: Format, given: &Options) -> Value {
    let labels = given.labels.iter();
    let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let options = ExportOptions::with_defaults(format)
        .labels(Labels::new(labels).expect("labels"))
        .name(given.name.map(str::to_owned))
        .windows(given.windows)
        .exact(given.exact)
        .max_bytes(given.max_bytes)
        // This is long after all windows.
        .now_ms(4_000_000_000_000);
    let mut export = match Export::new(source, &options) {
        Ok(export) => export,
        Err(error) => {
            let argument = error.argument_in(tallyfold::Spelling::Python);
            return json!({ "error": { "code": error.code().as_str(), "argument": argument } });
        }
    };
    let notes = export.notes().iter().map(|note| note.kind().as_str());
    let notes: Vec<&str> = notes.collect();
    let mut pieces: Vec<Value> = Vec::new();
    let mut piece = Vec::new();
    while export.next_piece(&mut piece).is_some() {
        pieces.push(match str::from_utf8(&piece) {
            Ok(text) if !format.media_type().contains("protobuf") => text.into(),
            _ => {
                let hex = piece.iter().map(|byte| format!("{byte:02x}"));
                json!({ "hex": hex.collect::<String>() })
            }
        });
    }
    json!({
        "media_type": format.media_type(),
        "is_messages": format.is_messages(),
        "notes": notes,
        "pieces": pieces,
    })
}

/// A table with one window of 15 minutes. Its groups have the values in `ODD`, and its counts depend on `seed`.
fn window(quarter: u32, seed: u64) -> CountTable {
    let groups = (0..).zip(ODD).filter(|(at, _)| !(at + seed).is_multiple_of(5));
    let groups = groups.map(|(at, value)| (value, [seed * 1000 + at, at * seed, 3 * seed % 4]));
    counted(quarter, &groups.collect::<Vec<_>>())
}

fn counted(quarter: u32, groups: &[(&str, [u64; 3])]) -> CountTable {
    let instant =
        |quarter: u32| format!("2026-01-01T{:02}:{:02}:00Z", 10 + quarter / 4, quarter % 4 * 15);
    let counts = groups.iter().map(|(value, [success, errors, filtered])| {
        json!({
            "success": success.to_string(),
            "errors": errors.to_string(),
            "filtered": filtered.to_string(),
            "dimensions": { "integration": value, "reason": "" },
        })
    });
    let total = |at: usize| {
        let sum: u64 = groups.iter().map(|(_, counts)| counts[at]).sum();
        sum.to_string()
    };
    let body = json!({
        "start": instant(quarter),
        "end": instant(quarter + 1),
        "totalDelivered": total(0),
        "totalErrors": total(1),
        "totalFiltered": total(2),
        "counts": counts.collect::<Vec<_>>(),
    });
    let options = AggregatorOptions::default().metric(Metric::EventDelivery);
    let mut aggregator =
        Aggregator::new(&["integration", "reason"], options).expect("two dimensions");
    aggregator.push(body.to_string().as_bytes()).expect("a response");
    aggregator.finish().expect("a response")
}

/// A late correction: some counts decrease, some groups appear, and some groups disappear.
fn revision(before: &CountTable, after: &CountTable) -> Revision {
    Revision {
        window: before.coverage()[0],
        table: after.clone(),
        changes: compare(before, after).expect("tables of the same kind"),
        settled: true,
        number: 2,
        clock_ahead_ms: 0,
    }
}
