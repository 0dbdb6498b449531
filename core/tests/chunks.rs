//! Splitting a body at any byte makes no difference, and truncating it at any byte is an error.

use proptest::prelude::*;
use serde_json::{Value, json};
use tallyfold::{Aggregator, AggregatorOptions, Code, CountTable, Frame, Limits, Result};

const DIMENSIONS: [&str; 2] = ["write_key", "integration"];

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<CountTable> {
    let mut aggregator = Aggregator::new(&DIMENSIONS, AggregatorOptions::default())?;
    chunks.into_iter().try_for_each(|chunk| aggregator.push(chunk))?;
    aggregator.finish()
}

/// A body of more than 2 kB that contains everything that a chunk can split: escapes, surrogate
/// pairs, characters of several bytes, numbers, literals, unknown fields.
fn body() -> Vec<u8> {
    let entries: Vec<String> = (0..16)
        .map(|number| {
            format!(
                r#"{{"success": "{number}000", "errors": "0{number}", "filtered": "7", "beta": [1.5e-3, true, null],
                "dimensions": {{"write_key": "ключ-{number}", "integration": "\ud83d\ude00 \"é\" {number}"}}}}"#
            )
        })
        .collect();
    let (delivered, errors) = (120_000, 120);
    let body = format!(
        r#"{{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z", "counts": [{}],
        "totalDelivered": "{delivered}", "totalErrors": "{errors}", "totalFiltered": "112"}}"#,
        entries.join(",\n")
    );
    assert!(body.len() > 2_000);
    body.into_bytes()
}

#[test]
fn a_body_split_at_every_byte_gives_the_same_table() {
    let body = body();
    let whole = read([body.as_slice()]).expect("a good body");
    assert_eq!((whole.len(), whole.totals().success), (16, 120_000));
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(read([left, right]).as_ref(), Ok(&whole), "split at {at}");
    }
    assert_eq!(read(body.chunks(1)), Ok(whole));
}

#[test]
fn a_body_cut_at_every_byte_is_an_error_that_names_the_byte() {
    let body = body();
    for at in 0..body.len() {
        let error = read([&body[..at]]).expect_err("a cut body");
        let code = if at == 0 { Code::EmptyBody } else { Code::TruncatedBody };
        assert_eq!((error.code(), error.offset()), (code, Some(at as u64)), "cut at {at}");
        assert_eq!(read(body[..at].chunks(1)), Err(error), "cut at {at}, byte by byte");
    }
}

/// A body of many entries in the shape that is predicted. `odd` replaces one of them.
fn long_body(odd: &str) -> Vec<u8> {
    let entry = |number: u32| match number {
        97 => odd.to_owned(),
        _ => format!(
            r#"{{"success":"{number}","errors":"0","filtered":"7","dimensions":{{"write_key":"ключ {number}","integration":"Integration {}"}}}}"#,
            number % 7
        ),
    };
    let entries: Vec<String> = (0..120).map(entry).collect();
    let body = format!(
        r#"{{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:15:00Z","totalDelivered":"0","totalErrors":"0","totalFiltered":"0","counts":[{}]}}"#,
        entries.join(",")
    );
    body.into_bytes()
}

#[test]
fn an_entry_that_is_carried_over_is_read_as_any_other() {
    let odd = [
        r#"{"success":"1","errors":"2","filtered":"3","dimensions":{"write_key":"\u0061","integration":"b"}}"#,
        r#"{"success":"1","errors":"2","filtered":"3","dimensions":{"write_key":"a"}}"#,
        r#"{"success":"1","errors":"2","filtered":"3""#,
        r#"{"success":"x","errors":"2","filtered":"3","dimensions":{"write_key":"a","integration":"b"}}"#,
        r#"{"success":"1","errors":"2","filtered":"3","dimensions":{"write_key":"ключ 1","integration":"Integration 1"}}"#,
    ];
    for odd in odd {
        let body = long_body(odd);
        let plainly = read(body.chunks(1));
        // Chunks that are carried over: every place in an entry is cut by one of them.
        for size in 1025..1400 {
            assert_eq!(read(body.chunks(size)), plainly, "chunks of {size}, {odd}");
        }
        // From a large chunk to a small one, or to none at all.
        for at in 11_000..11_300 {
            let (left, right) = body.split_at(at);
            let small = right.chunks(100);
            assert_eq!(read([left].into_iter().chain(small)), plainly, "split at {at}");
            let cut = read([left]);
            assert_eq!(cut, read(left.chunks(1)), "cut at {at}, {odd}");
        }
    }
}

/// Near the end of a chunk entries are not predicted, but carried to the next one: also those that
/// end before it does.
#[test]
fn an_entry_that_ends_close_to_the_cut_is_read_once() {
    let entry = |number: usize| {
        let dimensions = format!(r#"{{"integration": "i{number}", "write_key": "w"}}"#);
        format!(r#"{{"dimensions": {dimensions}, "errors": "0", "filtered": "0", "success": "7"}}"#)
    };
    for (before, after) in [("", ""), ("\n", "\n  ")] {
        let entries: Vec<String> = (0..24).map(entry).collect();
        let body = format!(
            r#"{{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:15:00Z","totalDelivered":"168","totalErrors":"0","totalFiltered":"0","counts":[{}]}}"#,
            entries.join(&format!("{before},{after}"))
        );
        let body = body.as_bytes();
        let whole = read([body]).expect("a good body");
        assert_eq!((whole.len(), whole.totals().success), (24, 168));
        // Only between long chunks is anything carried.
        for at in 1_025..=body.len() - 1_024 {
            let (left, right) = body.split_at(at);
            assert_eq!(read([left, right]).as_ref(), Ok(&whole), "split at {at}");
        }
    }
}

#[test]
fn a_string_limit_below_the_digits_of_a_count_holds_however_the_body_comes() {
    let limits = Limits::default().string_bytes(12);
    let entry = r#"{"dimensions":{"write_key":"a","integration":"b"},"errors":"0","filtered":"0","success":"1234567890123"}"#;
    let body = format!(r#"{{"counts":[{entry},{entry}]}}"#);
    let read = |size| {
        let options = AggregatorOptions::default().limits(limits);
        let mut aggregator = Aggregator::new(&DIMENSIONS, options)?;
        body.as_bytes().chunks(size).try_for_each(|chunk| aggregator.push(chunk))?;
        aggregator.finish()
    };
    let error = read(1).expect_err("a string that is too long");
    assert_eq!(error.code(), Code::StringLimit);
    assert_eq!(read(body.len()), Err(error));
}

/// The entries of a body as serde_json parses them, without tallyfold's own rules.
fn entries_by_serde(body: &[u8]) -> Option<Vec<Value>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["counts"].as_array()?.clone())
}

/// The sums of the counts by dimension values, in the slow and obvious way.
fn sums(entries: &[Value]) -> Vec<(Vec<String>, [u64; 3])> {
    let mut sums = std::collections::BTreeMap::<Vec<String>, [u64; 3]>::new();
    for entry in entries {
        let key = DIMENSIONS
            .iter()
            .map(|name| entry["dimensions"][name].as_str().expect("a string").to_owned())
            .collect();
        let sum = sums.entry(key).or_default();
        for (sum, name) in sum.iter_mut().zip(["success", "errors", "filtered"]) {
            *sum += entry[name].as_str().expect("digits").parse::<u64>().expect("digits");
        }
    }
    sums.into_iter().collect()
}

fn rows(table: &CountTable) -> Vec<(Vec<String>, [u64; 3])> {
    table
        .rows()
        .map(|row| {
            let counts = row.counts();
            let key = row.values().map(str::to_owned).collect();
            (key, [counts.success, counts.errors, counts.filtered])
        })
        .collect()
}

fn any_document() -> impl Strategy<Value = Value> {
    let value = "[a-c]{0,2}|.{0,3}";
    let count = 0..u64::MAX / 64;
    let entry = (value, value, count.clone(), count.clone(), count);
    prop::collection::vec(entry, 0..12).prop_map(|entries| {
        let mut seen = std::collections::BTreeSet::new();
        let entries: Vec<Value> = entries
            .into_iter()
            .filter(|(key, integration, ..)| seen.insert((key.clone(), integration.clone())))
            .map(|(key, integration, success, errors, filtered)| {
                json!({
                    "success": success.to_string(),
                    "errors": errors.to_string(),
                    "filtered": filtered.to_string(),
                    "dimensions": {"write_key": key, "integration": integration},
                })
            })
            .collect();
        json!({
            "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
            "totalDelivered": "0", "totalErrors": "0", "totalFiltered": "0", "counts": entries,
        })
    })
}

/// One entry in one of the ways in which a service may write it.
fn written(style: usize, number: usize, key: &str, count: u64) -> String {
    let integration = format!("Integration {number}");
    let (key, integration) = (json!(key), json!(integration));
    match style {
        0 => format!(
            r#"{{"success":"{count}","errors":"0","filtered":"{number}","dimensions":{{"write_key":{key},"integration":{integration}}}}}"#
        ),
        1 => format!(
            r#"{{ "dimensions" : {{ "integration" : {integration}, "write_key" : {key} }} , "filtered":"{number}", "errors":"0", "success":"{count}" }}"#
        ),
        2 => format!(
            "{{\n  \"errors\": \"0\",\n  \"success\": \"00{count}\",\n  \"filtered\": \"{number}\",\n  \"dimensions\": {{\n    \"write_key\": {key},\n    \"integration\": {integration}\n  }}\n}}"
        ),
        3 => format!(
            r#"{{"success":"{count}","errors":"0","filtered":"{number}","dimensions":{{"write_key":{key},"integration":"\u0049ntegration {number}"}}}}"#
        ),
        4 => format!(
            r#"{{"success":"{count}","latency":1.5,"errors":"0","filtered":"{number}","dimensions":{{"write_key":{key},"integration":{integration}}}}}"#
        ),
        _ => format!(
            r#"{{"success":"{count}","errors":"0","filtered":"{number}","dimensions":{{"integration":{integration},"write_key":{key}}},"x":[{{"success":"1"}}]}}"#
        ),
    }
}

/// Cuts a body at the given places.
fn split<'a>(body: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = places.iter().map(|place| place.index(body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|edges| &body[edges[0]..edges[1]]).collect()
}

proptest! {
    #[test]
    fn any_document_is_added_up_as_by_hand(
        document in any_document(),
        pretty: bool,
        places: Vec<prop::sample::Index>,
    ) {
        let body =
            if pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) };
        let body = body.expect("JSON");
        let table = read(split(&body, &places)).expect("a good body");
        prop_assert_eq!(rows(&table), sums(&entries_by_serde(&body).expect("JSON")));
        let saved = table.to_json();
        prop_assert_eq!(CountTable::from_json(saved.as_bytes()), Ok(table));
    }

    /// Runs of entries that are written alike, and then in another way: what is predicted of them
    /// is what is read of them.
    #[test]
    fn however_entries_are_written_they_are_read_alike(
        runs in prop::collection::vec((0..6_usize, 1..9_usize, "[a-z]{0,12}|.{0,4}", 0..u64::MAX / 64), 1..8),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        places: Vec<prop::sample::Index>,
    ) {
        let mut entries = Vec::new();
        for (style, length, key, count) in runs {
            for _ in 0..length {
                entries.push(written(style, entries.len(), &key, count >> (entries.len() % 64)));
            }
        }
        let mut body = format!(
            r#"{{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:15:00Z","totalDelivered":"0","totalErrors":"0","totalFiltered":"0","counts":[{}]}}"#,
            entries.join(",")
        ).into_bytes();
        if let Some((place, byte)) = damage {
            let at = place.index(body.len());
            body[at] = byte;
        }
        let whole = read([body.as_slice()]);
        prop_assert_eq!(&read(body.chunks(1)), &whole, "byte by byte, nothing can be predicted");
        prop_assert_eq!(&read(split(&body, &places)), &whole);
        match whole {
            Ok(table) => {
                let entries = entries_by_serde(&body).expect("what was accepted is JSON");
                prop_assert_eq!(rows(&table), sums(&entries));
            }
            Err(error) => prop_assert!(damage.is_some(), "{error}"),
        }
    }

    /// A changed byte or two: whatever is accepted, serde_json accepts with the same counts.
    #[test]
    fn whatever_is_accepted_serde_json_accepts(
        document in any_document(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        places: Vec<prop::sample::Index>,
    ) {
        let mut body = serde_json::to_vec(&document).expect("JSON");
        for (place, byte) in changes {
            let at = place.index(body.len());
            body[at] = byte;
        }
        let whole = read([body.as_slice()]);
        prop_assert_eq!(&read(split(&body, &places)), &whole);
        if let Ok(table) = whole {
            let entries = entries_by_serde(&body).expect("what was accepted is JSON");
            prop_assert_eq!(rows(&table), sums(&entries));
        }
    }

    /// Whatever serde_json refuses as JSON is refused, and never as anything but a `response` error.
    #[test]
    fn any_bytes_end_in_a_typed_error(body: Vec<u8>, places: Vec<prop::sample::Index>) {
        let error = read([body.as_slice()]).expect_err("no result looks like this");
        prop_assert_eq!(error.kind().as_str(), "response");
        prop_assert_eq!(read(split(&body, &places)), Err(error));
    }

    #[test]
    fn merging_is_commutative_and_associative(documents in [any_document(), any_document(), any_document()]) {
        let [a, b, c] = [0, 1, 2].map(|hour: usize| {
            let mut document = documents[hour].clone();
            document["start"] = json!(format!("2026-01-01T0{hour}:00:00Z"));
            document["end"] = json!(format!("2026-01-01T0{}:00:00Z", hour + 1));
            read([serde_json::to_vec(&document).expect("JSON").as_slice()]).expect("a good body")
        });
        let merge = |a: &CountTable, b: &CountTable| a.merge(b, false).expect("apart");
        let abc = merge(&merge(&a, &b), &c);
        prop_assert_eq!(&merge(&a, &merge(&b, &c)), &abc);
        prop_assert_eq!(&merge(&c, &merge(&b, &a)), &abc);
        prop_assert_eq!(abc.coverage().len(), 1);
        let none: [&str; 0] = [];
        for names in [&DIMENSIONS[..1], &DIMENSIONS[1..], &none] {
            let group = |table: &CountTable| table.group_by(names).expect("a subset");
            prop_assert_eq!(merge(&merge(&group(&a), &group(&b)), &group(&c)), group(&abc));
        }
    }
}
