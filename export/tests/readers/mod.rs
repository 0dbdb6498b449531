//! Parsers of the text formats. They follow the specifications, and share no code with the encoders.

use std::collections::BTreeMap;

use serde_json::Value;
use tallyfold::Timestamp;
use tallyfold_export::Format;

/// Single counts by their labels, their time and their name.
pub(crate) type Read = BTreeMap<(BTreeMap<String, String>, i64, String), i128>;

const COUNTS: [&str; 3] = ["success", "errors", "filtered"];

/// Converts a timestamp in milliseconds since 1970 to the unit of a format; 0 for StatsD, which has no timestamps.
pub(crate) fn time_of(format: Format, unix_ms: i64) -> i64 {
    match format {
        Format::Influx => unix_ms * 1_000_000,
        Format::DogStatsD | Format::Datadog => unix_ms / 1000,
        Format::StatsD => 0,
        _ => unix_ms,
    }
}

pub(crate) fn leaves_out_empty(format: Format) -> bool {
    matches!(format, Format::Influx | Format::DogStatsD | Format::Datadog)
}

pub(crate) fn read(format: Format, text: &str) -> Read {
    let counts: Vec<_> = match format {
        Format::Csv => csv(text),
        Format::Ndjson => lines(text).flat_map(ndjson).collect(),
        Format::Influx => lines(text).flat_map(influx).collect(),
        Format::DogStatsD => lines(text).map(dogstatsd).collect(),
        Format::StatsD => lines(text).map(statsd).collect(),
        Format::Datadog => datadog(text),
        other => panic!("no reader for {other}"),
    };
    let mut read = Read::new();
    for (labels, time, name, count) in counts {
        let labels: BTreeMap<_, _> = labels.into_iter().collect();
        assert_eq!(read.insert((labels, time, name), count), None, "written twice");
    }
    read
}

type Count = (Vec<(String, String)>, i64, String, i128);

fn lines(text: &str) -> impl Iterator<Item = &str> {
    assert!(text.is_empty() || text.ends_with('\n'));
    text.split_terminator('\n')
}

/// The counts of a row from its members, some of which are labels.
fn row(members: &[(String, String)]) -> Vec<Count> {
    let of = |name: &str| {
        let mut found = members.iter().filter(|(other, _)| other == name);
        let value = found.next().unwrap().1.clone();
        assert!(found.next().is_none(), "{name} twice");
        value
    };
    let end = Timestamp::parse(&of("window_end")).unwrap();
    assert!(Timestamp::parse(&of("window_start")).unwrap() < end);
    assert_eq!(of("settled"), "true");
    let is_label = |name: &str| {
        !COUNTS.contains(&name) && !["window_start", "window_end", "settled"].contains(&name)
    };
    let labels = members.iter().filter(|(name, _)| is_label(name));
    let labels: Vec<_> = labels.cloned().collect();
    COUNTS
        .map(|name| (labels.clone(), end.unix_ms() - 1, name.to_owned(), of(name).parse().unwrap()))
        .into()
}

fn csv(text: &str) -> Vec<Count> {
    let mut reader =
        csv::ReaderBuilder::new().terminator(csv::Terminator::CRLF).from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let records = reader.records().map(|record| record.unwrap());
    records
        .flat_map(|record| {
            let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            row(&names.iter().zip(&record).map(owned).collect::<Vec<_>>())
        })
        .collect()
}

fn ndjson(line: &str) -> Vec<Count> {
    let object: Value = serde_json::from_str(line).unwrap();
    let members = object.as_object().unwrap().iter();
    let text = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (name.clone(), value)
    };
    let is_large = |value: &Value| value.as_str().is_some_and(|digits| digits.len() >= 16);
    assert!(object["success"].is_number() || is_large(&object["success"]));
    row(&members.map(text).collect::<Vec<_>>())
}

/// Splits a text at each `at` that has no backslash before it.
fn split(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == at {
            parts.push(String::new());
            continue;
        }
        let part = parts.last_mut().unwrap();
        part.push(character);
        if character == '\\' {
            part.extend(characters.next());
        }
    }
    parts
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let next = characters.next().unwrap();
                assert!(",= ".contains(next), "InfluxDB keeps the backslash before {next:?}");
                plain.push(next);
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// Replaces each sign and the two hexadecimal digits after it with the byte that they encode.
fn decoded(text: &str, sign: u8) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        if *first == sign {
            let digits = std::str::from_utf8(&others[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn influx(line: &str) -> Vec<Count> {
    assert!(!line.bytes().any(|byte| byte.is_ascii_control()));
    let parts = split(line, ' ');
    let [series, fields, time] = &parts[..] else { panic!("{line}") };
    let series = split(series, ',');
    assert_eq!(series[0], "tallyfold_event_delivery_by_integration_reason");
    assert!(series[1..].is_sorted_by_key(|tag| tag.split('=').next().unwrap().to_owned()));
    let tags: Vec<_> = series[1..]
        .iter()
        .map(|tag| {
            let pair = split(tag, '=');
            let [name, value] = &pair[..] else { panic!("{tag}") };
            assert!(!value.is_empty());
            (name.clone(), decoded(&unescaped(value), b'%'))
        })
        .collect();
    let fields = fields.split(',').map(|field| {
        let (name, value) = field.split_once('=').unwrap();
        let value: i64 = value.strip_suffix('i').unwrap().parse().unwrap();
        (name, value)
    });
    fields
        .map(|(name, value)| (tags.clone(), time.parse().unwrap(), name.to_owned(), value.into()))
        .collect()
}

fn dogstatsd(line: &str) -> Count {
    let mut parts = line.split('|');
    let (name, value) = parts.next().unwrap().split_once(':').unwrap();
    assert_eq!(parts.next(), Some("c"));
    let (mut labels, mut time) = (Vec::new(), None);
    for part in parts {
        if let Some(tags) = part.strip_prefix('#') {
            labels.extend(tags.split(',').map(|tag| {
                let (name, value) = tag.split_once(':').unwrap();
                (name.to_owned(), decoded(value, b'%'))
            }));
        } else {
            time = Some(part.strip_prefix('T').unwrap().parse().unwrap());
        }
    }
    let stem = "tallyfold.event_delivery.by_integration_reason.";
    let count = name.strip_prefix(stem).unwrap().to_owned();
    (labels, time.unwrap(), count, value.parse().unwrap())
}

fn statsd(line: &str) -> Count {
    let (name, value) = line.split_once(':').unwrap();
    // The server deletes all other characters.
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    assert!(name.bytes().all(is_kept), "{name}");
    let stem = "tallyfold.event_delivery.by_integration_reason.";
    let parts: Vec<&str> = name.strip_prefix(stem).unwrap().split('.').collect();
    let (count, pairs) = parts.split_last().unwrap();
    let pair = |pair: &[&str]| {
        assert!(!pair[1].is_empty());
        let value = if pair[1] == "-" { "" } else { pair[1] };
        (pair[0].to_owned(), decoded(value, b'-'))
    };
    let labels = pairs.chunks(2).map(pair).collect();
    let value = value.strip_suffix("|c").unwrap().parse().unwrap();
    (labels, 0, (*count).to_owned(), value)
}

fn datadog(text: &str) -> Vec<Count> {
    let message: Value = serde_json::from_str(text).unwrap();
    let mut counts = Vec::new();
    for entry in message["series"].as_array().unwrap() {
        let metric = entry["metric"].as_str().unwrap();
        let name = metric.rsplit('.').next().unwrap();
        assert_eq!(entry["type"], 1);
        let tags = entry["tags"].as_array().unwrap().iter().map(|tag| {
            let (name, value) = tag.as_str().unwrap().split_once(':').unwrap();
            (name.to_owned(), value.to_owned())
        });
        let tags: Vec<_> = tags.collect();
        let points = entry["points"].as_array().unwrap();
        assert!(!points.is_empty());
        for point in points {
            let time = point["timestamp"].as_i64().unwrap();
            let value = point["value"].as_i64().unwrap().into();
            counts.push((tags.clone(), time, name.to_owned(), value));
        }
    }
    counts
}
