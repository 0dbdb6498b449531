//! Both versions of Prometheus remote-write, parsed by wire types and by the field numbers of the specifications.

use std::collections::{BTreeMap, BTreeSet};

use crate::protobuf::{
    COUNTS, START_MS, Samples, Windows, changes, fields, labels, options, pieces, revision,
    samples, table, varints, windows,
};
use proptest::prelude::*;
use tallyfold::Code;
use tallyfold_export::{Export, ExportOptions, Format, NoteKind};

const FORMATS: [Format; 2] = [Format::RemoteWrite, Format::RemoteWrite2];
const STEM: &str = "tallyfold_event_delivery_by_integration_reason";

fn metric(count: &str) -> String {
    format!("{STEM}_{count}_events")
}

/// A series with its labels and its samples, in the order of the message.
#[derive(Debug)]
struct Series {
    labels: Vec<(String, String)>,
    samples: Vec<(i64, f64)>,
}

fn read_sample(message: &[u8]) -> (i64, f64) {
    let (mut time, mut value) = (0, 0.0);
    for (number, field) in fields(message) {
        match number {
            1 => value = field.float(),
            2 => time = field.number() as i64,
            other => panic!("a sample has no field {other}"),
        }
    }
    (time, value)
}

fn read_1(message: &[u8]) -> Vec<Series> {
    let series = |message| {
        let (mut labels, mut samples) = (Vec::new(), Vec::new());
        for (number, field) in fields(message) {
            match number {
                1 => {
                    let (mut name, mut value) = ("", "");
                    for (number, field) in fields(field.bytes()) {
                        match number {
                            1 => name = field.text(),
                            2 => value = field.text(),
                            other => panic!("a label has no field {other}"),
                        }
                    }
                    labels.push((name.to_owned(), value.to_owned()));
                }
                2 => samples.push(read_sample(field.bytes())),
                other => panic!("a series has no field {other}"),
            }
        }
        Series { labels, samples }
    };
    let of_request = fields(message).into_iter().map(|(number, field)| {
        assert_eq!(number, 1, "a request has series only");
        series(field.bytes())
    });
    of_request.collect()
}

fn read_2(message: &[u8]) -> Vec<Series> {
    let (mut symbols, mut all) = (Vec::new(), Vec::new());
    for (number, field) in fields(message) {
        match number {
            4 => {
                assert!(all.is_empty(), "symbols come first");
                symbols.push(field.text().to_owned());
            }
            5 => {
                let (mut labels, mut samples, mut metadata) = (Vec::new(), Vec::new(), None);
                for (number, field) in fields(field.bytes()) {
                    match number {
                        1 => {
                            let refs = varints(field.bytes());
                            let label = |pair: &[u64]| {
                                let [name, value] = [pair[0], pair[1]];
                                (symbols[name as usize].clone(), symbols[value as usize].clone())
                            };
                            labels.extend(refs.chunks(2).map(label));
                        }
                        2 => samples.push(read_sample(field.bytes())),
                        5 => {
                            let of: BTreeMap<u64, u64> = fields(field.bytes())
                                .into_iter()
                                .map(|(number, field)| (number, field.number()))
                                .collect();
                            assert_eq!((of.len(), of[&1]), (3, 2), "a gauge");
                            let help = symbols[of[&3] as usize].as_str();
                            assert!(help.starts_with("Events "), "{help}");
                            assert_eq!(symbols[of[&4] as usize], "events");
                            metadata = Some(of);
                        }
                        other => panic!("a series has no field {other}"),
                    }
                }
                assert!(metadata.is_some(), "each series says what it is");
                all.push(Series { labels, samples });
            }
            other => panic!("a request has no field {other}"),
        }
    }
    assert_eq!(symbols[0], "", "0 stands for no text");
    let distinct: BTreeSet<_> = symbols.iter().collect();
    assert_eq!(distinct.len(), symbols.len(), "each symbol stands once");
    all
}

fn read(format: Format, piece: &[u8]) -> Vec<Series> {
    let message = snap::raw::Decoder::new().decompress_vec(piece);
    let message = message.expect("snappy");
    match format {
        Format::RemoteWrite => read_1(&message),
        _ => read_2(&message),
    }
}

/// The samples of all pieces, each of which is parsed separately. Fails if a sample occurs twice.
fn read_all(format: Format, pieces: &[Vec<u8>]) -> Result<Samples, TestCaseError> {
    let mut samples = Samples::new();
    let mut last = BTreeMap::new();
    for series in pieces.iter().flat_map(|piece| read(format, piece)) {
        let names: Vec<_> = series.labels.iter().map(|(name, _)| name.as_bytes()).collect();
        prop_assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
        prop_assert!(series.labels.iter().all(|(_, value)| !value.is_empty()));
        prop_assert!(!series.samples.is_empty());
        let mut labels: BTreeMap<_, _> = series.labels.into_iter().collect();
        let name = labels.remove("__name__").expect("a name");
        for (time, value) in series.samples {
            let before = last.insert((name.clone(), labels.clone()), time);
            prop_assert!(before < Some(time), "{before:?} and then {time}");
            let start = time + 1 - 900_000;
            samples.insert((name.clone(), labels.clone(), start), value as i128);
        }
    }
    Ok(samples)
}

proptest! {
    #[test]
    fn every_sample_is_there_once_and_sorted(windows in windows(1 << 53), own in labels(), most in 1..9_usize) {
        let table = table(&windows);
        let expected = samples(&windows, &own, metric);
        for format in FORMATS {
            let options = options(format, &own);
            let whole = pieces(&table, &options, usize::MAX);
            prop_assert_eq!(whole.len(), usize::from(!expected.is_empty()));
            prop_assert_eq!(&read_all(format, &whole)?, &expected);
            for most in [1, most] {
                prop_assert_eq!(&read_all(format, &pieces(&table, &options, most))?, &expected);
            }
        }
    }

    #[test]
    fn a_revision_has_its_changes(windows in windows(1 << 53), own in labels()) {
        let revision = revision(&windows);
        let expected = changes(&windows, &own, metric);
        for format in FORMATS {
            let pieces = pieces(&revision, &options(format, &own), usize::MAX);
            prop_assert_eq!(&read_all(format, &pieces)?, &expected);
        }
    }
}

/// Windows with one row each, in which `success` events were delivered.
fn one_row(windows: usize, success: u64) -> Windows {
    let row = (("a".to_owned(), String::new()), [success, 0, 0]);
    vec![BTreeMap::from([row]); windows]
}

#[test]
fn pieces_are_as_small_as_the_caller_asks() {
    let windows: Windows = (0..4)
        .map(|_| {
            let rows =
                (0..500).map(|row| ((format!("integration {row}"), String::new()), [1, 2, 3]));
            rows.collect()
        })
        .collect();
    let table = table(&windows);
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format).max_bytes(20_000);
        let pieces = pieces(&table, &options, usize::MAX);
        let largest = pieces.iter().map(|piece| snap::raw::decompress_len(piece).expect("snappy"));
        let largest = largest.max().expect("a piece");
        assert!((10_000..=20_000).contains(&largest), "{format:?}: {largest}");
        let expected = samples(&windows, &BTreeMap::new(), metric);
        assert_eq!(read_all(format, &pieces).expect("in order"), expected);
    }
}

#[test]
fn many_windows_stay_in_order() {
    let windows = one_row(600, 7);
    for format in FORMATS {
        let pieces = pieces(&table(&windows), &ExportOptions::with_defaults(format), usize::MAX);
        let read = read_all(format, &pieces).expect("in order");
        assert_eq!(read, samples(&windows, &BTreeMap::new(), metric));
        assert_eq!(read.len(), 600 * COUNTS.len());
    }
}

#[test]
fn a_count_above_2_53_is_noted_or_refused() {
    for format in FORMATS {
        let options = ExportOptions::with_defaults(format);
        let exact = options.clone().exact(true);
        let fits = table(&one_row(1, 1 << 53));
        assert_eq!(Export::new(&fits, &exact).expect("fits").notes(), []);
        let beyond = table(&one_row(1, (1 << 53) + 1));
        let error = Export::new(&beyond, &exact).expect_err("beyond 2^53");
        assert_eq!(error.code(), Code::InexactCount);
        let export = Export::new(&beyond, &options).expect("rounded");
        let kinds: Vec<_> = export.notes().iter().map(|note| note.kind()).collect();
        assert_eq!(kinds, [NoteKind::InexactCount]);
        let series = read(format, &pieces(&beyond, &options, usize::MAX)[0]);
        assert_eq!(series[0].samples, [(START_MS + 899_999, 9_007_199_254_740_992.0)]);
        let largest = table(&one_row(1, u64::MAX));
        let series = read(format, &pieces(&largest, &options, usize::MAX)[0]);
        assert_eq!(series[0].samples[0].1, 18_446_744_073_709_551_616.0);
    }
}

#[test]
fn headers_are_those_of_the_specifications() {
    let headers = |format: Format| format.headers().collect::<Vec<_>>();
    assert_eq!(
        headers(Format::RemoteWrite),
        [
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ]
    );
    assert_eq!(
        headers(Format::RemoteWrite2),
        [
            ("content-type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "2.0.0"),
        ]
    );
}
