//! The text formats, read by independent readers.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tallyfold::{Code, CountTable};
use tallyfold_export::{Export, ExportOptions, Format, Labels, NoteKind};

use crate::readers::{Read, read};
use crate::tables::{
    DAY, Rows, Windows, any_value, any_windows, options, pieces, revision, rows, table, text,
};

const TEXTS: [Format; 6] = [
    Format::Csv,
    Format::Ndjson,
    Format::Influx,
    Format::DogStatsD,
    Format::StatsD,
    Format::Datadog,
];
const BY: [&str; 2] = ["integration", "reason"];
const QUARTER: (i64, i64) = (0, 900);

fn quarter() -> CountTable {
    let of_quarter =
        rows(&[(["ad, =desk", ""], [3, 0, 0]), (["warehouse", "say \"50%\"|\\"], [7, 1, 2])]);
    table(&BY, &Windows::from([(QUARTER, of_quarter)]))
}

/// A group that falls, one that vanishes, and one that stays the same.
fn fallen(settled: bool) -> tallyfold::Revision {
    let before = rows(&[(["a", "x"], [7, 1, 0]), (["b", ""], [2, 0, 0]), (["c", ""], [5, 5, 5])]);
    let after = rows(&[(["a", "x"], [4, 1, 2]), (["c", ""], [5, 5, 5])]);
    revision(&BY, QUARTER, &before, &after, settled)
}

const LABELS: [(&str, &str); 2] = [("zone", "eu 1"), ("cluster", "main")];

#[test]
fn csv_has_labels_times_dimensions_and_counts_as_columns() {
    let expected = "zone,cluster,window_start,window_end,settled,integration,reason,success,errors,filtered\r\n\
        eu 1,main,2026-01-01T00:00:00Z,2026-01-01T00:15:00Z,true,\"ad, =desk\",,3,0,0\r\n\
        eu 1,main,2026-01-01T00:00:00Z,2026-01-01T00:15:00Z,true,warehouse,\"say \"\"50%\"\"|\\\",7,1,2\r\n";
    assert_eq!(text(&quarter(), &options(Format::Csv, &LABELS)), expected);
    let expected = "window_start,window_end,settled,revision,integration,reason,success,errors,filtered\r\n\
        2026-01-01T00:00:00Z,2026-01-01T00:15:00Z,false,0,a,x,-3,0,2\r\n\
        2026-01-01T00:00:00Z,2026-01-01T00:15:00Z,false,0,b,,-2,0,0\r\n";
    assert_eq!(text(&fallen(false), &options(Format::Csv, &[])), expected);
    let settled = text(&fallen(true), &options(Format::Csv, &[]));
    assert_eq!(settled, expected.replace("false", "true"));
}

#[test]
fn ndjson_has_the_same_members() {
    let expected = concat!(
        r#"{"zone":"eu 1","cluster":"main","window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:15:00Z","#,
        r#""settled":true,"integration":"ad, =desk","reason":"","success":3,"errors":0,"filtered":0}"#,
        "\n",
        r#"{"zone":"eu 1","cluster":"main","window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:15:00Z","#,
        r#""settled":true,"integration":"warehouse","reason":"say \"50%\"|\\","#,
        r#""success":7,"errors":1,"filtered":2}"#,
        "\n",
    );
    assert_eq!(text(&quarter(), &options(Format::Ndjson, &LABELS)), expected);
    let expected = concat!(
        r#"{"window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:15:00Z","settled":true,"revision":0,"#,
        r#""integration":"a","reason":"x","success":-3,"errors":0,"filtered":2}"#,
        "\n",
        r#"{"window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:15:00Z","settled":true,"revision":0,"#,
        r#""integration":"b","reason":"","success":-2,"errors":0,"filtered":0}"#,
        "\n",
    );
    assert_eq!(text(&fallen(true), &options(Format::Ndjson, &[])), expected);
}

#[test]
fn influx_has_a_point_for_each_group_and_window() {
    let stem = "tallyfold_event_delivery_by_integration_reason";
    let expected = format!(
        "{stem},cluster=main,integration=ad\\,\\ \\=desk,zone=eu\\ 1 success=3i,errors=0i,filtered=0i 1767226499999000000\n\
         {stem},cluster=main,integration=warehouse,reason=say\\ \"50%25\"|%5C,zone=eu\\ 1 success=7i,errors=1i,filtered=2i 1767226499999000000\n"
    );
    assert_eq!(text(&quarter(), &options(Format::Influx, &LABELS)), expected);
    let expected = format!(
        "{stem},integration=a,reason=x,revision=0 success=-3i,filtered=2i 1767226499999000000\n\
         {stem},integration=b,revision=0 success=-2i 1767226499999000000\n"
    );
    assert_eq!(text(&fallen(true), &options(Format::Influx, &[])), expected);
}

#[test]
fn dogstatsd_has_counts_with_timestamps() {
    let stem = "tallyfold.event_delivery.by_integration_reason";
    let (desk, warehouse) = (
        "|c|#cluster:main,integration:ad%2C =desk,zone:eu 1|T1767226499",
        "|c|#cluster:main,integration:warehouse,reason:say \"50%25\"%7C\\,zone:eu 1|T1767226499",
    );
    let expected = format!(
        "{stem}.success:3{desk}\n{stem}.errors:0{desk}\n{stem}.filtered:0{desk}\n\
         {stem}.success:7{warehouse}\n{stem}.errors:1{warehouse}\n{stem}.filtered:2{warehouse}\n"
    );
    assert_eq!(text(&quarter(), &options(Format::DogStatsD, &LABELS)), expected);
    let expected = format!(
        "{stem}.success:-3|c|#integration:a,reason:x,revision:0|T1767226499\n\
         {stem}.filtered:2|c|#integration:a,reason:x,revision:0|T1767226499\n\
         {stem}.success:-2|c|#integration:b,revision:0|T1767226499\n"
    );
    assert_eq!(text(&fallen(true), &options(Format::DogStatsD, &[])), expected);
}

/// An agent reads the first 8,192 bytes of a datagram, and drops the rest.
#[test]
fn a_datagram_that_its_receiver_would_cut_is_refused() {
    let of = |length: usize| {
        let rows = rows(&[([&"x".repeat(length)], [3, 1, 2])]);
        table(&["event_name"], &Windows::from([((0, 900), rows)]))
    };
    let lines = |length: usize, options: &ExportOptions| text(&of(length), options);
    let plain = options(Format::DogStatsD, &[]);
    let longest = (1..3_000).rev().find(|length| Export::new(&of(*length), &plain).is_ok());
    let longest = longest.unwrap();
    assert!((8_190..=8_192).contains(&lines(longest, &plain).len()));
    let error = Export::new(&of(longest + 1), &plain).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), Code::UnsupportedByFormat);
    assert!(error.message().contains("the destination reads at most 8192"), "{error}");
    // The error names the longest value, and the group in which it is.
    let named = format!("the dimension event_name has a value of {} bytes", longest + 1);
    assert!(error.message().contains(&named), "{error}");
    // Each of these bytes is escaped, so it takes three.
    let escaped = options(Format::DogStatsD, &[("team", &"|".repeat(2_000))]);
    let error = Export::new(&of(1), &escaped).map(|_| ()).unwrap_err();
    assert!(error.message().contains("the label team"), "{error}");
    let long = "y".repeat(3_000);
    let two = rows(&[(["a", "b"], [1, 0, 0]), ([long.as_str(), "c"], [1, 0, 0])]);
    let two = table(&["integration", "reason"], &Windows::from([((0, 900), two)]));
    let labelled = options(Format::DogStatsD, &[("team", "short")]);
    let error = Export::new(&two, &labelled).map(|_| ()).unwrap_err();
    let named = "the dimension integration has a value of 3000 bytes";
    assert!(error.message().contains(named), "{error}");
    let long = options(Format::DogStatsD, &[("team", &"z".repeat(4_000))]);
    let error = Export::new(&of(3), &long).map(|_| ()).unwrap_err();
    let named = "the label team has a value of 4000 bytes";
    assert!(error.message().contains(named), "{error}");
    // An agent with a larger buffer.
    let larger = plain.max_bytes(20_000);
    assert_eq!(lines(longest + 1, &larger).lines().count(), 3);
    // No datagram can have more than 65,507 bytes.
    for (format, length) in [(Format::DogStatsD, 22_000), (Format::StatsD, 22_000)] {
        let all = options(format, &[]).max_bytes(1 << 20).now_ms((DAY + 900) * 1000);
        let error = Export::new(&of(length), &all).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedByFormat, "{error}");
        assert!(error.message().contains("65507"), "{error}");
        assert!(Export::new(&of(21_000), &all).is_ok(), "{format}");
    }
}

#[test]
fn statsd_has_labels_in_names() {
    let stem = "tallyfold.event_delivery.by_integration_reason.cluster.main.integration";
    let (desk, warehouse) = (
        "ad-2C-20-3Ddesk.reason.-.zone.eu-201",
        "warehouse.reason.say-20-2250-25-22-7C-5C.zone.eu-201",
    );
    let expected = format!(
        "{stem}.{desk}.success:3|c\n{stem}.{desk}.errors:0|c\n{stem}.{desk}.filtered:0|c\n\
         {stem}.{warehouse}.success:7|c\n{stem}.{warehouse}.errors:1|c\n{stem}.{warehouse}.filtered:2|c\n"
    );
    assert_eq!(text(&quarter(), &options(Format::StatsD, &LABELS)), expected);
}

#[test]
fn datadog_has_a_series_for_each_count_of_a_group() {
    let entry = |count: &str, value: i64, tags: &str| {
        format!(
            r#"{{"metric":"tallyfold.event_delivery.by_integration_reason.{count}","type":1,"unit":"event","interval":900,"points":[{{"timestamp":1767226499,"value":{value}}}],"tags":[{tags}]}}"#
        )
    };
    let desk = r#""cluster:main","integration:ad, =desk","zone:eu 1""#;
    let warehouse = r#""cluster:main","integration:warehouse","reason:say \"50%\"|\\","zone:eu 1""#;
    let entries = [
        entry("success", 3, desk),
        entry("errors", 0, desk),
        entry("filtered", 0, desk),
        entry("success", 7, warehouse),
        entry("errors", 1, warehouse),
        entry("filtered", 2, warehouse),
    ];
    assert_eq!(
        text(&quarter(), &options(Format::Datadog, &LABELS)),
        format!(r#"{{"series":[{}]}}"#, entries.join(","))
    );
    let a = r#""integration:a","reason:x","revision:0""#;
    let entries = [
        entry("success", -3, a),
        entry("filtered", 2, a),
        entry("success", -2, r#""integration:b","revision:0""#),
    ];
    assert_eq!(
        text(&fallen(true), &options(Format::Datadog, &[])),
        format!(r#"{{"series":[{}]}}"#, entries.join(","))
    );
}

#[test]
fn a_series_of_datadog_is_split_where_windows_have_another_length() {
    let one = |count| rows(&[(["a"], [count, 0, 0])]);
    let windows = Windows::from([
        ((0, 300), one(1)),
        ((300, 600), one(2)),
        ((600, 1500), one(3)),
        ((1500, 1800), one(4)),
    ]);
    let written = text(&table(&["integration"], &windows), &options(Format::Datadog, &[]));
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let series = written["series"].as_array().unwrap();
    let successes = series.iter().filter(|entry| {
        let metric = entry["metric"].as_str().unwrap();
        metric.ends_with(".success")
    });
    let shapes: Vec<_> = successes
        .map(|entry| {
            let points = entry["points"].as_array().unwrap();
            (entry["interval"].as_i64().unwrap(), points.len())
        })
        .collect();
    assert_eq!(shapes, [(300, 2), (900, 1), (300, 1)]);
}

#[test]
fn a_series_by_hours_says_which_of_them_are_not_whole() {
    let one = || rows(&[(["a"], [1, 0, 0])]);
    let windows = (0..5).map(|quarter| ((quarter * 900, quarter * 900 + 900), one()));
    let table = table(&["integration"], &windows.collect());
    let hours = tallyfold::TimeStep::parse("1h").unwrap();
    let series = std::sync::Arc::new(table.by_window(Some(hours)).unwrap());
    let expected = "window_start,window_end,settled,integration,success,errors,filtered\r\n\
        2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,a,4,0,0\r\n\
        2026-01-01T01:00:00Z,2026-01-01T02:00:00Z,false,a,1,0,0\r\n";
    assert_eq!(text(&series, &options(Format::Csv, &[])), expected);
    let influx = Export::new(&series, &options(Format::Influx, &[])).unwrap();
    assert_eq!(influx.notes()[0].kind(), NoteKind::WindowsLeftOut);
    assert_eq!(
        text(&series, &options(Format::Influx, &[])),
        "tallyfold_event_delivery_by_integration,integration=a success=4i,errors=0i,filtered=0i 1767229199999000000\n"
    );
}

#[test]
fn without_rows_there_is_no_message_and_a_text_has_its_header() {
    let empty = table(&BY, &Windows::from([(QUARTER, Rows::new())]));
    for format in TEXTS {
        let all = pieces(&empty, &options(format, &[]), usize::MAX);
        let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        match format {
            Format::Csv => assert_eq!(
                texts,
                ["window_start,window_end,settled,integration,reason,success,errors,filtered\r\n"]
            ),
            Format::Ndjson => assert_eq!(texts, [""]),
            _ => assert_eq!(texts, [""; 0]),
        }
    }
}

fn code_of(source: impl Into<tallyfold_export::Source>, options: &ExportOptions) -> (Code, String) {
    let error = Export::new(source, options).map(|_| ()).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn statsd_refuses_what_it_would_count_in_the_present() {
    let refused = |options: &ExportOptions| {
        let (code, message) = code_of(&quarter(), options);
        assert_eq!(code, Code::UnsupportedByFormat);
        assert!(message.contains("StatsD has no timestamps"), "{message}");
        assert!(message.contains("dogstatsd"), "{message}");
    };
    let at = |seconds: i64| options(Format::StatsD, &[]).now_ms((DAY + seconds) * 1000);
    // A window of 15 minutes counts as just ended for 15 minutes.
    assert!(Export::new(&quarter(), &at(900)).is_ok());
    assert!(Export::new(&quarter(), &at(1800)).is_ok());
    refused(&at(1801));
    refused(&options(Format::StatsD, &[]).now_ms(None));
    let (code, message) = code_of(&fallen(true), &at(900));
    assert_eq!(code, Code::UnsupportedByFormat);
    assert!(message.contains("late correction"), "{message}");
    let counts = rows(&[(["a", ""], [1, 0, 0])]);
    let first = revision(&BY, QUARTER, &Rows::new(), &counts, false);
    assert_eq!(
        text(&first, &at(900)),
        "tallyfold.event_delivery.by_integration_reason.integration.a.reason.-.revision.0.success:1|c\n"
    );
}

#[test]
fn a_value_that_a_reader_does_not_take_is_noted() {
    for bytes in [4_096, 4_097] {
        let long = "x".repeat(bytes);
        let counts = rows(&[(["a", &long], [1, 0, 0]), (["b", ""], [1, 0, 0])]);
        let whole = table(&BY, &Windows::from([(QUARTER, counts)]));
        let other = whole.filter(&[("integration".to_owned(), vec!["b".to_owned()])]).unwrap();
        // StatsD has no timestamps, so it refuses this window, and a datagram of DogStatsD would be too long.
        let formats = Format::ALL
            .iter()
            .filter(|format| !matches!(format, Format::StatsD | Format::DogStatsD));
        for format in formats {
            let is_limited = matches!(
                format,
                Format::OpenMetrics
                    | Format::RemoteWrite
                    | Format::RemoteWrite2
                    | Format::Otlp
                    | Format::OtlpJson
            );
            let notes = |counts: &CountTable| {
                let export = Export::new(counts, &ExportOptions::with_defaults(*format)).unwrap();
                let notes = export.notes().iter();
                notes.map(|note| (note.kind(), note.message())).collect::<Vec<_>>()
            };
            assert_eq!(notes(&other), [], "{format}");
            let found = notes(&whole);
            assert_eq!(found.len(), usize::from(is_limited && bytes > 4_096), "{format}");
            for (kind, message) in found {
                assert_eq!(kind, NoteKind::LongValue);
                assert!(message.starts_with("a value of reason has 4097 bytes"), "{message}");
            }
        }
    }
}

#[test]
fn labels_that_a_reader_does_not_take_are_noted() {
    let counts = rows(&[(["a", ""], [1, 0, 0])]);
    let table = table(&BY, &Windows::from([(QUARTER, counts)]));
    let many = |labels: usize| -> Vec<(String, String)> {
        (0..labels).map(|number| (format!("label_{number}"), "x".to_owned())).collect()
    };
    let named = |bytes: usize| vec![("n".repeat(bytes), "x".to_owned())];
    let valued = |bytes: usize| vec![("own".to_owned(), "x".repeat(bytes))];
    // VictoriaMetrics makes a label from the name of a metric, and three more for OTLP. Each row has two dimensions.
    for (format, most) in [
        (Format::RemoteWrite, 37),
        (Format::RemoteWrite2, 37),
        (Format::OpenMetrics, 37),
        (Format::Otlp, 34),
        (Format::OtlpJson, 34),
        (Format::Influx, usize::MAX),
    ] {
        let of = |labels: Vec<(String, String)>| {
            let labels = Labels::new(labels).unwrap();
            let options = ExportOptions::with_defaults(format).labels(labels);
            let export = Export::new(&table, &options).unwrap();
            let notes = export.notes().iter();
            let notes = notes.map(|note| (note.kind(), note.message()));
            notes.collect::<Vec<_>>()
        };
        assert_eq!(of(many(most.min(60))), [], "{format}");
        for fine in [named(256), valued(4_096)] {
            assert_eq!(of(fine), [], "{format}");
        }
        if most == usize::MAX {
            continue;
        }
        for (labels, kind, begin) in [
            (
                many(most + 1),
                NoteKind::LabelLimit,
                "series have 41 labels in VictoriaMetrics, which accepts up to 40",
            ),
            (named(257), NoteKind::LabelLimit, "the name of the label nnn"),
            (
                valued(4_097),
                NoteKind::LongValue,
                "a value of own has 4097 bytes: VictoriaMetrics accepts up to 4096",
            ),
        ] {
            let found = of(labels);
            let [(found, message)] = found.as_slice() else {
                panic!("{format}: {found:?}");
            };
            assert_eq!(*found, kind);
            assert!(message.starts_with(begin), "{message}");
        }
    }
}

#[test]
fn labels_that_a_format_uses_itself_are_refused() {
    let cases = [
        (Format::Csv, "window_start", true),
        (Format::Csv, "settled", true),
        (Format::Csv, "start", false),
        (Format::Ndjson, "filtered", true),
        (Format::Influx, "time", true),
        (Format::Influx, "errors", true),
        (Format::Influx, "start", false),
        (Format::Datadog, "success", false),
    ];
    for (format, name, is_refused) in cases {
        let options = options(format, &[(name, "x")]);
        let export = Export::new(&quarter(), &options);
        match export.map(|_| ()) {
            Ok(()) => assert!(!is_refused, "{format} {name}"),
            Err(error) => {
                assert!(is_refused, "{format} {name}");
                assert_eq!(error.code(), Code::InvalidArgument);
                assert_eq!(error.argument_name(), Some("labels"));
            }
        }
    }
}

#[test]
fn times_that_a_format_has_not_are_refused() {
    let one = || rows(&[(["a", ""], [1, 0, 0])]);
    let year_2300 = 8_700_000_000;
    let later = table(&BY, &Windows::from([((year_2300, year_2300 + 900), one())]));
    let (code, message) = code_of(&later, &options(Format::Influx, &[]));
    assert_eq!(code, Code::UnsupportedByFormat);
    assert!(message.contains("1677 to 2262"), "{message}");
    let before_1970 = table(&BY, &Windows::from([((-DAY - 900, -DAY), one())]));
    for format in [Format::DogStatsD, Format::Datadog] {
        let (code, message) = code_of(&before_1970, &options(format, &[]));
        assert_eq!(code, Code::UnsupportedByFormat);
        assert!(message.contains("whole seconds after 1970"), "{message}");
        assert!(Export::new(&later, &options(format, &[])).is_ok());
    }
    assert!(Export::new(&before_1970, &options(Format::Influx, &[])).is_ok());
}

#[test]
fn counts_that_a_target_rounds_are_named_and_those_it_cannot_hold_refused() {
    let of = |count| {
        let all = rows(&[(["a", ""], [count, 0, 0])]);
        table(&BY, &Windows::from([(QUARTER, all)]))
    };
    let (exact, inexact, above_i64) = (of(1 << 53), of((1 << 53) + 1), of(u64::MAX));
    for format in TEXTS {
        let noted = |table: &CountTable| {
            let export = Export::new(table, &options(format, &[]));
            export.map(|export| !export.notes().is_empty())
        };
        let is_float = matches!(format, Format::DogStatsD | Format::StatsD | Format::Datadog);
        assert_eq!(noted(&exact).ok(), Some(false), "{format}");
        assert_eq!(noted(&inexact).ok(), Some(is_float), "{format}");
        match noted(&above_i64) {
            Ok(noted) => assert_eq!(noted, is_float, "{format}"),
            Err(error) => {
                assert_eq!(format, Format::Influx);
                assert_eq!(error.code(), Code::CountOverflow);
            }
        }
        if format != Format::Influx {
            let written = text(&above_i64, &options(format, &[]));
            assert!(written.contains("18446744073709551615"), "{format}");
        }
    }
}

/// All single counts that a reader must find.
fn expected(format: Format, windows: &Windows, labels: &[(&str, &str)]) -> Read {
    let mut all = Read::new();
    for ((_, end), rows) in windows {
        for (values, counts) in rows {
            let mut of: BTreeMap<String, String> = labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            of.extend(BY.map(str::to_owned).into_iter().zip(values.clone()));
            if crate::readers::leaves_out_empty(format) {
                of.retain(|_, value| !value.is_empty());
            }
            for (name, count) in ["success", "errors", "filtered"].iter().zip(counts) {
                let at = crate::readers::time_of(format, (DAY + end) * 1000 - 1);
                let key = (of.clone(), at, (*name).to_owned());
                assert_eq!(all.insert(key, i128::from(*count)), None);
            }
        }
    }
    all
}

fn samples_of(windows: &Windows) -> usize {
    windows.values().map(BTreeMap::len).sum()
}

/// Parses all pieces. Each message is parsed separately.
fn read_all(format: Format, pieces: &[(usize, String)]) -> Read {
    let texts = pieces.iter().map(|(_, text)| text.as_str());
    if !format.is_messages() {
        return read(format, &texts.collect::<String>());
    }
    let mut all = Read::new();
    for text in texts {
        for (key, count) in read(format, text) {
            assert_eq!(all.insert(key, count), None, "written twice");
        }
    }
    all
}

/// The windows that a format can represent: for StatsD, which has no timestamps, only the first one.
fn carried(format: Format, windows: &Windows) -> Windows {
    let most = if format == Format::StatsD { 1 } else { usize::MAX };
    windows.iter().take(most).map(|(of, rows)| (*of, rows.clone())).collect()
}

proptest! {
    #[test]
    fn readers_give_back_equal_values_and_counts(
        windows in any_windows(5),
        label in any_value(),
        most in prop_oneof![Just(usize::MAX), 1..20_usize],
        max_bytes in prop_oneof![Just(None), (1..3000_usize).prop_map(Some)],
    ) {
        for format in TEXTS {
            let windows = carried(format, &windows);
            let labels = [("cluster", label.as_str())];
            let now_ms = windows.keys().next().map(|of| (DAY + of.1) * 1000);
            let options = options(format, &labels).max_bytes(max_bytes).now_ms(now_ms);
            let pieces = pieces(&table(&BY, &windows), &options, most);
            let samples: usize = pieces.iter().map(|(samples, _)| samples).sum();
            prop_assert_eq!(samples, samples_of(&windows), "{}", format);
            prop_assert_eq!(read_all(format, &pieces), expected(format, &windows, &labels), "{}", format);
            let limit = max_bytes.unwrap_or(usize::MAX);
            for (samples, text) in &pieces {
                let is_cut = *samples <= 1 || text.len() <= limit;
                prop_assert!(is_cut, "{}: {} bytes in {} samples", format, text.len(), samples);
            }
        }
    }

    #[test]
    fn the_changes_of_a_revision_are_read_back(
        all in any_windows(1),
        later in any_windows(1),
        most in prop_oneof![Just(usize::MAX), 1..5_usize],
    ) {
        let (before, after) = (all.values().next().unwrap(), later.values().next().unwrap());
        let revision = revision(&BY, QUARTER, before, after, true);
        let keys = before.keys().chain(after.keys());
        for format in TEXTS {
            if format == Format::StatsD {
                continue;
            }
            let mut changes = Read::new();
            for values in keys.clone() {
                let of = |rows: &Rows| rows.get(values).copied().unwrap_or_default().map(i128::from);
                let (old, new) = (of(before), of(after));
                let mut labels: BTreeMap<String, String> =
                    BY.map(str::to_owned).into_iter().zip(values.clone()).collect();
                labels.insert("revision".to_owned(), "0".to_owned());
                if crate::readers::leaves_out_empty(format) {
                    labels.retain(|_, value| !value.is_empty());
                }
                for (position, name) in ["success", "errors", "filtered"].iter().enumerate() {
                    let at = crate::readers::time_of(format, (DAY + 900) * 1000 - 1);
                    let change = new[position] - old[position];
                    let is_row = matches!(format, Format::Csv | Format::Ndjson);
                    if change != 0 || is_row && old != new {
                        changes.insert((labels.clone(), at, (*name).to_owned()), change);
                    }
                }
            }
            let pieces = pieces(&revision, &options(format, &[]), most);
            prop_assert_eq!(read_all(format, &pieces), changes, "{}", format);
        }
    }

    #[test]
    fn pieces_of_one_sample_have_the_same_samples(windows in any_windows(4)) {
        for format in TEXTS {
            let windows = carried(format, &windows);
            let now_ms = windows.keys().next().map(|of| (DAY + of.1) * 1000);
            let options = options(format, &[]).now_ms(now_ms);
            let table = table(&BY, &windows);
            let (whole, single) = (pieces(&table, &options, usize::MAX), pieces(&table, &options, 1));
            prop_assert_eq!(read_all(format, &single), read_all(format, &whole));
            if format.is_messages() {
                prop_assert!(single.iter().all(|(samples, _)| *samples == 1));
            }
        }
    }

    #[test]
    fn windows_and_groups_come_in_their_order(windows in any_windows(80)) {
        let table = table(&BY, &windows);
        let csv = text(&table, &options(Format::Csv, &[]));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
        let keys: Vec<_> = rows.iter().map(|row| (row[0].to_owned(), row[3].to_owned(), row[4].to_owned())).collect();
        prop_assert!(keys.is_sorted());
        prop_assert_eq!(keys.len(), samples_of(&windows));

        let message = text(&table, &options(Format::Datadog, &[]));
        let message = if message.is_empty() { r#"{"series":[]}"#.to_owned() } else { message };
        let message: serde_json::Value = serde_json::from_str(&message).unwrap();
        let mut times = BTreeMap::new();
        for entry in message["series"].as_array().unwrap() {
            let series = (entry["metric"].to_string(), entry["tags"].to_string());
            let points = entry["points"].as_array().unwrap().iter();
            let points = points.map(|point| point["timestamp"].as_i64().unwrap());
            times.entry(series).or_insert_with(Vec::new).extend(points);
        }
        for (series, times) in &times {
            prop_assert!(times.is_sorted_by(|one, next| one < next), "{:?}", series);
        }
        prop_assert_eq!(times.values().map(Vec::len).sum::<usize>(), 3 * samples_of(&windows));
    }
}

#[test]
fn pieces_are_as_large_as_the_target_takes() {
    let values = |number: usize| vec![format!("integration {number}"), "x".repeat(number % 50)];
    let all: Rows = (0..20_000).map(|number| (values(number), [number as u64, 1, 0])).collect();
    let table = table(&BY, &Windows::from([(QUARTER, all)]));
    for (format, limit, least) in [
        (Format::Influx, 1_000_000, 999_000),
        (Format::DogStatsD, 1432, 950),
        (Format::StatsD, 1432, 950),
        (Format::Datadog, 500_000, 499_000),
    ] {
        let pieces = pieces(&table, &options(format, &[]), usize::MAX);
        let (_, all_but_last) = pieces.split_last().unwrap();
        assert!(!all_but_last.is_empty());
        for (_, text) in all_but_last {
            let is_full = (least..=limit).contains(&text.len());
            assert!(is_full, "{format}: {}", text.len());
        }
    }
}
