//! Checks that must hold for any input. Each check panics if it fails.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, TimeDelta, Timelike};
use serde_json::Value;
use tallyfold::{
    Aggregator, AggregatorOptions, Code, CountTable, Counts, Error, Frame, Result, TimeStep,
    Timestamp, Window, compare,
};
use tallyfold_engine::{plain_text, read_count};

use super::documents::{Choices, any_setup, document, mutate};
use super::reading::{self, Reading, Setup, instant};

/// Compares the fold with the plain reading of a body. The body is also split at each place, at all
/// places, and at every byte. Returns the result of the fold.
pub(crate) fn body(body: &[u8], setup: &Setup, places: &[usize]) -> Result<CountTable> {
    let whole = fold([body], setup);
    for place in places {
        let two = split(body, std::slice::from_ref(place));
        assert_eq!(fold(two, setup), whole, "split at {place}");
    }
    let all = split(body, places);
    assert_eq!(fold(all, setup), whole, "split at {places:?}");
    assert_eq!(fold(body.chunks(1), setup), whole, "byte by byte");
    match (&whole, reading::read(body, setup)) {
        (Ok(table), Ok(plain)) => {
            assert_eq!(reading_of(table), plain);
            let json = table.to_json();
            assert_eq!(CountTable::from_json(json.as_bytes()).as_ref(), Ok(table), "{json}");
        }
        (Err(error), plain) if agree(error, plain.as_ref().err().copied(), body, setup) => {}
        (fold, plain) => panic!("the fold says {fold:?}, serde_json says {plain:?}"),
    }
    if let Err(error) = &whole {
        let offset = error.offset().expect("an error in a body has its place");
        assert!(offset <= body.len() as u64 && error.path().is_some(), "{error}");
    }
    whole
}

/// Like [`body`], for a body with choices before it.
pub(crate) fn chosen_body(data: &[u8]) {
    const HEAD: usize = 16;
    let Some((head, rest)) = data.split_at_checked(HEAD) else {
        return;
    };
    let mut choices = Choices::new(head);
    let setup = any_setup(&mut choices);
    let places: Vec<usize> = (0..4)
        .map(|_| {
            let byte = choices.byte();
            place(usize::from(byte) * (rest.len() + 1) / 256, byte, rest)
        })
        .collect();
    drop(body(rest, &setup, &places));
}

/// Like [`body`], for a document that the choices make, and for damaged ones. Returns the result
/// for each of them.
pub(crate) fn chosen_documents(data: &[u8], changed: usize) -> Vec<Result<CountTable>> {
    let choices = &mut Choices::new(data);
    let setup = any_setup(choices);
    let good = document(choices, &setup);
    let mut said = vec![body(&good, &setup, &any_places(choices, &good))];
    for _ in 0..changed {
        let mut bytes = good.clone();
        mutate(choices, &mut bytes);
        said.push(body(&bytes, &setup, &any_places(choices, &bytes)));
    }
    said
}

/// Compares the parsing of counts with the standard library: of the digits at the start of the
/// bytes, and of all bytes as a count in a body, in a single entry and in entries that are
/// predicted.
pub(crate) fn digits(data: &[u8]) {
    let length = data.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = str::from_utf8(&data[..length]).expect("ASCII");
    let is_read = data.len() >= 8 && (1..20).contains(&length);
    let plain = is_read.then(|| (digits.parse().expect("19 digits fit"), length));
    assert_eq!(read_count(data), plain);

    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let entries = ["a", "b", "c"].map(|name| {
        serde_json::json!({
            "success": text, "errors": "0", "filtered": "0", "dimensions": {"integration": name},
        })
    });
    for count in [1, entries.len()] {
        let document = serde_json::json!({
            "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z", "counts": entries[..count],
            "totalDelivered": "0", "totalErrors": "0", "totalFiltered": "0",
        });
        let options = AggregatorOptions::default();
        let dimensions = vec!["integration"];
        let json = document.to_string().into_bytes();
        let said = body(&json, &Setup { dimensions, options }, &[json.len() / 2]);
        // A longer number could overflow here. [`body`] has compared it with the plain reading.
        if text.len() <= 37 {
            let number: Option<u128> = text.parse().ok().filter(|_| length == text.len());
            let sum = number.and_then(|number| u64::try_from(number * count as u128).ok());
            assert_eq!(said.ok().map(|table| table.totals().success), sum);
        }
    }
}

/// Compares the scan for the end of plain text with a check of each byte.
pub(crate) fn text(data: &[u8]) {
    let ends = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    for start in 0..data.len().min(40) {
        let bytes = &data[start..];
        assert_eq!(plain_text(bytes), bytes.iter().position(ends).unwrap_or(bytes.len()));
    }
}

/// Compares timestamps, windows and steps with chrono. The lines of the input are a start, an end
/// and a step.
pub(crate) fn timestamps(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n');
    let [start, end, step] = [(); 3].map(|()| lines.next().unwrap_or_default());
    let [first, last] = [start, end].map(timestamp);
    match (Window::parse(start, end), first, last) {
        (Ok(window), Some(first), Some(last)) => {
            assert!(instant(start) < instant(end));
            assert_eq!((window.start(), window.end()), (first, last));
        }
        (Ok(window), ..) => panic!("{window:?} has an edge that is none"),
        (Err(error), Some(_), Some(_)) => {
            assert!(error.code() == Code::InvalidWindow && instant(start) >= instant(end));
        }
        (Err(error), first, _) => {
            let argument = if first.is_none() { "start" } else { "end" };
            assert_eq!(error.code(), Code::InvalidTimestamp);
            assert_eq!(error.argument_name(), Some(argument));
        }
    }
    let seconds = seconds_of(step);
    let parsed = TimeStep::parse(step).ok();
    assert_eq!(parsed.map(TimeStep::seconds), seconds, "{step:?}");
    if let (Some(step), Some(seconds)) = (parsed, seconds) {
        assert_eq!(TimeStep::parse(&step.to_string()), Ok(step));
        for timestamp in [first, last].into_iter().flatten() {
            floors(step, seconds, timestamp);
        }
    }
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let plain = instant(text);
    let Ok(parsed) = Timestamp::parse(text) else {
        assert_eq!(plain, None, "{text:?} is refused");
        return None;
    };
    let by_chrono = DateTime::parse_from_rfc3339(text).map(|instant| instant.to_utc());
    assert_eq!(plain, by_chrono.ok(), "{text:?} is accepted");
    let plain = plain.expect("what chrono accepts");
    assert_eq!(parsed.unix_ms(), plain.timestamp_millis());
    assert_eq!(instant(&parsed.to_string()), Some(plain));
    assert_eq!(Timestamp::parse(&parsed.to_string()), Ok(parsed));
    let whole = Timestamp::from_unix_ms(parsed.unix_ms()).expect("it was a timestamp");
    assert!(whole <= parsed && whole.unix_ms() == parsed.unix_ms());
    Some(parsed)
}

/// The seconds of a step, read digit by digit.
fn seconds_of(step: &str) -> Option<u32> {
    let (unit, digits) = step.as_bytes().split_last()?;
    let unit = match unit {
        b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        b'd' => 86_400,
        _ => return None,
    };
    let count = digits.iter().try_fold(0_u32, |count, digit| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        // The cap is above a day even in seconds.
        Some((count * 10 + digit).min(100_000))
    })?;
    let seconds = count.checked_mul(unit)?;
    (seconds > 0 && 86_400 % seconds == 0).then_some(seconds)
}

fn floors(step: TimeStep, seconds: u32, timestamp: Timestamp) {
    let plain = instant(&timestamp.to_string()).expect("a timestamp is shown as it is read");
    let of_day = plain.num_seconds_from_midnight();
    let before = TimeDelta::seconds(i64::from(of_day % seconds));
    let floor = plain.with_nanosecond(0).expect("a second starts") - before;
    let shown = |timestamp: Timestamp| instant(&timestamp.to_string());
    assert_eq!(shown(step.floor(timestamp)), Some(floor));
    let after = floor + TimeDelta::seconds(i64::from(seconds));
    let after = (after.year() <= 9999).then_some(after);
    assert_eq!(step.after(timestamp).and_then(shown), after);
}

/// A saved table that can be read must stay the same when it is saved again, and must have the sums
/// of its rows.
pub(crate) fn table_json(data: &[u8]) {
    let table = match CountTable::from_json(data) {
        Ok(table) => table,
        Err(error) => {
            assert_eq!(error.code(), Code::InvalidTable, "{error}");
            assert!(error.path().is_some() || error.offset() <= Some(data.len() as u64), "{error}");
            return;
        }
    };
    let json = table.to_json();
    let again = CountTable::from_json(json.as_bytes());
    assert_eq!(again.as_ref(), Ok(&table), "{json}");
    assert_eq!(again.map(|again| again.to_json()), Ok(json));

    let plain: Value = serde_json::from_slice(data).expect("what is accepted is JSON");
    let windows = plain["windows"].as_array().expect("windows");
    let rows = windows.iter().flat_map(|window| window["rows"].as_array().expect("rows"));
    let mut sums = [0_u128; 3];
    for row in rows {
        for (sum, name) in sums.iter_mut().zip(Counts::NAMES) {
            *sum += row[name].as_str().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        }
    }
    let totals = |counts: Counts| [counts.success, counts.errors, counts.filtered].map(u128::from);
    assert_eq!(totals(table.totals()), sums);
    let names = table.dimensions().names();
    for first in &names {
        regroups(&table, &[first]);
        for second in names.iter().filter(|second| *second != first) {
            regroups(&table, &[first, second]);
        }
    }
    regroups(&table, &[]);
    let series = table.by_window(None).expect("whole windows are never cut");
    assert_eq!(series.windows().len(), windows.len());
    let unchanged = compare(&table, &table).expect("a table is like itself");
    assert_eq!(unchanged.len(), table.len());
    let merged = table.merge(&table, false).expect_err("the same time twice");
    assert_eq!(merged.code(), Code::OverlappingCoverage);
    assert_eq!(table.merge(&table, true), Ok(table));
}

/// Compares regrouping with a sum for each key, row by row.
fn regroups(table: &CountTable, names: &[&str]) {
    let all = table.dimensions().names();
    let mut sums = BTreeMap::<Vec<&str>, [u64; 3]>::new();
    for row in table.rows() {
        let values: Vec<&str> = row.values().collect();
        let position = |name: &&str| all.iter().position(|known| known == name);
        let key = names.iter().filter_map(position).map(|at| values[at]);
        let sum = sums.entry(key.collect()).or_default();
        let Counts { success, errors, filtered } = row.counts();
        for (sum, count) in sum.iter_mut().zip([success, errors, filtered]) {
            *sum += count;
        }
    }
    let grouped = table.group_by(names).expect("no dimension is unknown");
    assert_eq!(grouped.totals(), table.totals());
    let rows = grouped.rows().map(|row| {
        let Counts { success, errors, filtered } = row.counts();
        (row.values().collect(), [success, errors, filtered])
    });
    assert!(rows.eq(sums), "grouped by {names:?}");
}

fn any_places(choices: &mut Choices<'_>, body: &[u8]) -> Vec<usize> {
    let count = 2 + choices.below(6);
    (0..count)
        .map(|_| {
            let at = choices.below(body.len() + 1);
            place(at, choices.byte(), body)
        })
        .collect()
}

/// Returns `at`, or a place shortly after the end of an object, where predictions begin and end.
fn place(at: usize, byte: u8, body: &[u8]) -> usize {
    if byte.is_multiple_of(2) {
        return at;
    }
    let brace = body[at..].iter().position(|byte| *byte == b'}');
    let close = brace.map_or(at, |brace| at + brace + usize::from(byte / 2) % 12);
    close.min(body.len())
}

/// Whether the error has this code. A string or a number that is too long is refused before its
/// end, where serde_json may find another error.
fn agree(error: &Error, plain: Option<Code>, body: &[u8], setup: &Setup) -> bool {
    const IN_STRINGS: [Code; 4] =
        [Code::InvalidJson, Code::InvalidUtf8, Code::LoneSurrogate, Code::TruncatedBody];
    if error.code() != Code::StringLimit {
        return Some(error.code()) == plain;
    }
    let at = error.offset().unwrap_or_default() as usize;
    let token = at.checked_sub(setup.options.limits.string_bytes).map(|start| &body[start..=at]);
    plain == Some(Code::StringLimit)
        || plain.is_some_and(|code| IN_STRINGS.contains(&code))
        || token.is_some_and(|token| token.iter().all(reading::is_of_number))
}

fn fold<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, setup: &Setup) -> Result<CountTable> {
    let mut aggregator = Aggregator::new(&setup.dimensions, setup.options.clone())?;
    chunks.into_iter().try_for_each(|chunk| aggregator.push(chunk))?;
    aggregator.finish()
}

fn split<'a>(body: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts = places.to_vec();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|edges| &body[edges[0]..edges[1]]).collect()
}

fn reading_of(table: &CountTable) -> Reading {
    let window = table.windows()[0];
    let [start, end] = [window.start(), window.end()]
        .map(|edge| instant(&edge.to_string()).expect("a timestamp is shown as it is read"));
    let rows = table.rows().map(|row| {
        let counts = row.counts();
        let values = row.values().map(str::to_owned).collect();
        (values, [counts.success, counts.errors, counts.filtered])
    });
    let in_order: Vec<(Vec<String>, [u64; 3])> = rows.collect();
    assert!(in_order.is_sorted_by(|a, b| a.0 < b.0), "rows are sorted and distinct");
    let reported = table.reported().expect("one response says its totals");
    Reading {
        start,
        end,
        reported: [reported.success, reported.errors, reported.filtered],
        repeated_combinations: table.notes().repeated_combinations,
        null_dimensions: table.notes().null_dimensions,
        rows: in_order.into_iter().collect(),
    }
}
