//! OTLP as protobuf and as JSON, read by the package `opentelemetry-proto`.

use std::collections::BTreeMap;

use crate::protobuf::{
    START_MS, Samples, Windows, changes, labels, options, pieces, revision, samples, table, value,
    windows,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Request;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, metric, number_data_point};
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};
use tallyfold::{Code, CountTable};
use tallyfold_export::{Export, ExportOptions, Format};

const FORMATS: [Format; 2] = [Format::Otlp, Format::OtlpJson];
const LARGEST: u64 = i64::MAX as u64;

fn name_of(count: &str) -> String {
    format!("tallyfold.event_delivery.by_integration_reason.{count}")
}

fn read(format: Format, piece: &[u8]) -> Request {
    match format {
        Format::Otlp => Request::decode(piece).expect("a request"),
        _ => serde_json::from_slice(piece).expect("a request"),
    }
}

fn text(attribute: &KeyValue) -> (String, String) {
    let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
    let Some(any_value::Value::StringValue(value)) = value else {
        panic!("{attribute:?} has no text");
    };
    (attribute.key.clone(), value.clone())
}

/// The points of all pieces, each of which is parsed separately. Fails if a point occurs twice.
fn read_all(
    format: Format,
    pieces: &[Vec<u8>],
    is_monotonic: bool,
) -> Result<Samples, TestCaseError> {
    let mut samples = Samples::new();
    let mut last = BTreeMap::new();
    for piece in pieces {
        let request = read(format, piece);
        let [resource] = &request.resource_metrics[..] else {
            panic!("one resource");
        };
        let attributes = &resource.resource.as_ref().expect("a resource").attributes;
        let attributes: Vec<_> = attributes.iter().map(text).collect();
        prop_assert_eq!(attributes, [("service.name".to_owned(), "tallyfold".to_owned())]);
        let [of_scope] = &resource.scope_metrics[..] else {
            panic!("one scope");
        };
        let scope = of_scope.scope.as_ref().expect("a scope");
        prop_assert_eq!((&*scope.name, &*scope.version), ("tallyfold", env!("CARGO_PKG_VERSION")));
        let names: Vec<_> = of_scope.metrics.iter().map(|metric| &metric.name).collect();
        prop_assert!(names.len() <= 3, "each metric stands once: {names:?}");
        for of in &of_scope.metrics {
            prop_assert_eq!(&*of.unit, "{event}");
            prop_assert!(of.description.starts_with("Events "));
            let Some(metric::Data::Sum(sum)) = &of.data else {
                panic!("{of:?} is no sum");
            };
            prop_assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Delta);
            prop_assert_eq!(sum.is_monotonic, is_monotonic);
            prop_assert!(!sum.data_points.is_empty());
            for point in &sum.data_points {
                let Some(number_data_point::Value::AsInt(value)) = point.value else {
                    panic!("{point:?} has no whole number");
                };
                let keys: Vec<_> =
                    point.attributes.iter().map(|attribute| &attribute.key).collect();
                prop_assert!(keys.is_sorted_by(|one, next| one < next));
                let labels: BTreeMap<_, _> = point.attributes.iter().map(text).collect();
                let (start, end) = (point.start_time_unix_nano, point.time_unix_nano);
                prop_assert_eq!(end - start, 900_000_000_000);
                let before = last.insert((of.name.clone(), labels.clone()), start);
                prop_assert!(before < Some(start), "in the order of time, none twice");
                samples.insert((of.name.clone(), labels, (start / 1_000_000) as i64), value.into());
            }
        }
    }
    Ok(samples)
}

proptest! {
    #[test]
    fn every_sample_is_there_once_and_sorted(windows in windows(1 << 60), own in labels(), most in 1..9_usize) {
        let table = table(&windows);
        let expected = samples(&windows, &own, name_of);
        for format in FORMATS {
            let options = options(format, &own);
            let whole = pieces(&table, &options, usize::MAX);
            prop_assert_eq!(whole.len(), usize::from(!expected.is_empty()));
            prop_assert_eq!(&read_all(format, &whole, true)?, &expected);
            for most in [1, most] {
                prop_assert_eq!(&read_all(format, &pieces(&table, &options, most), true)?, &expected);
            }
        }
    }

    #[test]
    fn a_revision_has_its_changes(windows in windows(1 << 60), own in labels()) {
        let revision = revision(&windows);
        let expected = changes(&windows, &own, name_of);
        for format in FORMATS {
            let pieces = pieces(&revision, &options(format, &own), usize::MAX);
            prop_assert_eq!(&read_all(format, &pieces, false)?, &expected);
        }
    }

    #[test]
    fn both_forms_say_the_same(windows in windows(LARGEST / 9), own in labels(), more in value()) {
        let own = own.into_iter().chain([("more".to_owned(), more)]).collect();
        let of = |format| pieces(&table(&windows), &options(format, &own), usize::MAX);
        let (binary, text) = (of(Format::Otlp), of(Format::OtlpJson));
        prop_assert_eq!(binary.len(), text.len());
        for (binary, text) in binary.iter().zip(&text) {
            prop_assert_eq!(read(Format::Otlp, binary), read(Format::OtlpJson, text));
        }
    }
}

/// One window with one row, in which `success` events were delivered.
fn one_row(success: u64) -> Windows {
    let row = (("a".to_owned(), String::new()), [success, 0, 5]);
    vec![BTreeMap::from([row])]
}

#[test]
fn the_json_is_as_the_specification_has_it() {
    let table = table(&one_row(LARGEST));
    let piece = &pieces(&table, &ExportOptions::with_defaults(Format::OtlpJson), 9)[0];
    let json: Value = serde_json::from_slice(piece).expect("JSON");
    let scope = &json["resourceMetrics"][0]["scopeMetrics"][0];
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    assert_eq!(
        scope["metrics"][0],
        json!({
            "name": name_of("success"), "description": "Events delivered", "unit": "{event}",
            "sum": {
                "aggregationTemporality": 1, "isMonotonic": true,
                "dataPoints": [{
                    "attributes": [attribute("integration", "a")],
                    "startTimeUnixNano": "1767225600000000000",
                    "timeUnixNano": "1767226500000000000",
                    "asInt": "9223372036854775807",
                }],
            },
        })
    );
    assert_eq!(scope["metrics"][1]["sum"]["dataPoints"][0]["asInt"], "0");
}

#[test]
fn a_count_above_i64_is_refused_before_anything_is_written() {
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format);
        let fits = Export::new(&table(&one_row(LARGEST)), &options).expect("fits");
        assert_eq!(fits.notes(), [], "whole numbers are exact");
        let error = Export::new(&table(&one_row(LARGEST + 1)), &options).expect_err("too large");
        assert_eq!(error.code(), Code::CountOverflow);
        assert!(error.to_string().contains("9223372036854775808"), "{error}");
    }
}

#[test]
fn a_change_may_be_as_far_below_0_as_above() {
    let windows: Windows = [one_row(LARGEST), one_row(0)].concat();
    for format in FORMATS {
        let pieces = pieces(&revision(&windows), &ExportOptions::with_defaults(format), 9);
        let read = read_all(format, &pieces, false).expect("in order");
        assert_eq!(read, changes(&windows, &BTreeMap::new(), name_of));
        assert_eq!(read.into_values().collect::<Vec<_>>(), [-i128::from(i64::MAX)]);
    }
}

/// A table with one window from `start` to `end`.
fn between(start: &str, end: &str) -> CountTable {
    let zero = json!({"success": "0", "errors": "0", "filtered": "0"});
    let mut row = zero.clone();
    row["values"] = json!([]);
    let saved = json!({
        "format": "tallyfold-table/1", "metric": null, "filter": [], "dimensions": [], "totals": zero,
        "windows": [{
            "start": start, "end": end, "reported": null,
            "notes": {"repeated_combinations": 0, "null_dimensions": 0}, "rows": [row],
        }],
    });
    CountTable::from_json(saved.to_string().as_bytes()).expect("a good table")
}

#[test]
fn times_are_exact_to_the_nanosecond_and_refused_beyond_64_bits() {
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format);
        let table = between("2026-01-01T00:00:00.000000001Z", "2026-01-01T00:00:00.999999999Z");
        let request = read(format, &pieces(&table, &options, 9)[0]);
        let data = &request.resource_metrics[0].scope_metrics[0].metrics[0].data;
        let Some(metric::Data::Sum(sum)) = data else {
            panic!("{data:?} is no sum");
        };
        let start = START_MS as u64 * 1_000_000;
        let point = &sum.data_points[0];
        assert_eq!(
            (point.start_time_unix_nano, point.time_unix_nano),
            (start + 1, start + 999_999_999)
        );
        for (start, end) in [
            ("1969-12-31T23:59:59Z", "1970-01-01T00:15:00Z"),
            ("2554-07-21T23:30:00Z", "2554-07-21T23:45:00Z"),
        ] {
            let error = Export::new(&between(start, end), &options).expect_err("no such time");
            assert_eq!(error.code(), Code::UnsupportedByFormat);
        }
        Export::new(&between("1970-01-01T00:00:00Z", "1970-01-01T00:15:00Z"), &options)
            .expect("1970");
    }
}

#[test]
fn pieces_are_about_as_small_as_the_caller_asks() {
    let rows = (0..2_000).map(|row| ((format!("integration {row}"), String::new()), [1, 2, 3]));
    let windows = vec![rows.collect()];
    let table = table(&windows);
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format).max_bytes(50_000);
        let pieces = pieces(&table, &options, usize::MAX);
        let largest = pieces.iter().map(Vec::len).max().expect("a piece");
        assert!((40_000..=51_000).contains(&largest), "{format:?}: {largest}");
        let read = read_all(format, &pieces, true).expect("in order");
        assert_eq!(read, samples(&windows, &BTreeMap::new(), name_of));
    }
}

#[test]
fn headers_are_those_of_the_specification() {
    let headers = |format: Format| format.headers().collect::<Vec<_>>();
    assert_eq!(headers(Format::Otlp), [("content-type", "application/x-protobuf")]);
    assert_eq!(headers(Format::OtlpJson), [("content-type", "application/json")]);
}
