//! Values of dimensions must be the same after they were written in any text format and read back.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tallyfold::{Aggregator, AggregatorOptions, CountTable, Metric};
use tallyfold_export::{Export, ExportOptions, Format};

#[path = "../export/tests/readers/mod.rs"]
#[allow(clippy::unwrap_used, reason = "a reader says so when it fails")]
mod readers;

const FORMATS: [Format; 6] = [
    Format::Csv,
    Format::Ndjson,
    Format::Influx,
    Format::DogStatsD,
    Format::StatsD,
    Format::Datadog,
];

/// The end of the only window.
const END_MS: i64 = 1_767_226_500_000;

/// Exports pairs of values. The data has a zero byte after each value.
pub fn values_come_back(data: &[u8]) {
    let texts: Vec<String> = data
        .split(|byte| *byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    let groups: BTreeMap<[String; 2], u64> = (0..)
        .zip(texts.chunks_exact(2))
        .map(|(count, pair)| ([pair[0].clone(), pair[1].clone()], count))
        .collect();
    let table = table(&groups);
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format).now_ms(END_MS + 1_000);
        let mut export = Export::new(&table, &options).expect("a usual table");
        let mut text = Vec::new();
        export.write_to(&mut text).expect("a vector takes everything");
        let text = String::from_utf8(text).expect("text");
        let text = if format == Format::Datadog && text.is_empty() {
            continue;
        } else {
            text
        };
        assert_eq!(readers::read(format, &text), expected(format, &groups), "{format}");
    }
}

fn table(groups: &BTreeMap<[String; 2], u64>) -> CountTable {
    let counts: Vec<Value> = groups
        .iter()
        .map(|([integration, reason], count)| {
            json!({
                "success": count.to_string(), "errors": "0", "filtered": "7",
                "dimensions": {"integration": integration, "reason": reason},
            })
        })
        .collect();
    let body = json!({
        "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
        "totalDelivered": "0", "totalErrors": "0", "totalFiltered": "0", "counts": counts,
    });
    let options = AggregatorOptions::default().metric(Metric::EventDelivery);
    let mut aggregator =
        Aggregator::new(&["integration", "reason"], options).expect("two dimensions");
    aggregator.push(body.to_string().as_bytes()).expect("a response");
    aggregator.finish().expect("a response")
}

fn expected(format: Format, groups: &BTreeMap<[String; 2], u64>) -> readers::Read {
    let mut expected = readers::Read::new();
    for (values, count) in groups {
        let labels = ["integration", "reason"].into_iter().zip(values);
        let labels =
            labels.filter(|(_, value)| !(readers::leaves_out_empty(format) && value.is_empty()));
        let labels: BTreeMap<String, String> =
            labels.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        for (name, count) in [("success", *count), ("errors", 0), ("filtered", 7)] {
            let time = readers::time_of(format, END_MS - 1);
            expected.insert((labels.clone(), time, name.to_owned()), i128::from(count));
        }
    }
    expected
}
