//! Stores what a collect has read while it runs, so that another process can continue it.
//!
//! The state is stored in segments, each a small JSON document of some windows. The last segment is
//! rewritten with each window until it is large enough; then a new one begins. So storing a window
//! takes the same time however many were stored before.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;
use tallyfold_engine::Counts;

use super::ledger::{Ledger, Origin, Reading};
use crate::checksum::checksum;
use crate::code::Code;
use crate::counts::metric::Metric;
use crate::counts::saved::{SavedTable, json_of};
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::counts::tree::{NoJson, Tree};
use crate::error::{Error, Result};
use crate::ranges::plan::Plan;
use crate::ranges::window_query::WindowQuery;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

/// The name of the format in each segment. The number grows when old readers can't read new segments.
const FORMAT: &str = "tallyfold-checkpoint/2";

/// Once the windows of a segment take more bytes than this, the next window goes into a new
/// segment.
const SEGMENT_BYTES: usize = 128 * 1024;

/// A part of a collect's state. The host stores it under its name and replaces what was stored
/// there, completely or not at all.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    /// Such as `segment-00003.json`.
    pub name: String,
    /// The document.
    pub json: String,
}

/// The name of the segment with a number, counted from 0.
///
/// ```
/// assert_eq!(tallyfold::segment_name(3), "segment-00003.json");
/// ```
#[must_use]
pub fn segment_name(number: u64) -> String {
    format!("segment-{number:05}.json")
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("name", &self.name)
            .field("bytes", &self.json.len())
            .finish()
    }
}

/// The fields of a segment, and those of its query.
const SEGMENT: [&str; 7] = [
    "format",
    "digest",
    "query",
    "segment",
    "provisional",
    "parts",
    "table",
];
const QUERY: [&str; 8] = [
    "cluster",
    "metric",
    "start",
    "end",
    "dimensions",
    "group_by",
    "window",
    "part",
];

/// A segment as it is stored.
#[derive(Serialize)]
struct SavedSegment<'a> {
    format: &'static str,
    /// The checksum of the document without this value. It is put in when all else is written.
    digest: &'static str,
    query: &'a SavedQuery,
    segment: u64,
    /// The starts of windows whose counts may still change.
    provisional: Vec<Timestamp>,
    /// The starts of windows that are parts of a window of the plan, as halves are.
    parts: Vec<Timestamp>,
    table: SavedTable<'a>,
}

/// The query and a fingerprint of the cluster. It does not say which client asked.
#[derive(Serialize)]
struct SavedQuery {
    cluster: String,
    metric: Metric,
    start: Timestamp,
    end: Timestamp,
    dimensions: Vec<&'static str>,
    group_by: Vec<&'static str>,
    window: String,
    part: Option<(u32, u32)>,
}

impl SavedQuery {
    fn new(query: &WindowQuery, plan: &Plan, part: Option<(u32, u32)>) -> Self {
        Self {
            cluster: query.cluster(),
            metric: query.query().metric(),
            start: plan.range().start(),
            end: plan.range().end(),
            dimensions: query.query().requested().names(),
            group_by: query.subject().dimensions.names(),
            window: plan.step().to_string(),
            part,
        }
    }
}

/// What has been stored, and what must be stored next.
pub(super) struct Journal {
    query: SavedQuery,
    subject: Subject,
    /// The number of the segment that is being filled.
    number: u64,
    /// The windows of that segment, in the order of time.
    entries: Vec<Entry>,
    /// How many bytes its windows take.
    bytes: usize,
    totals: Counts,
    /// How many of the ledger's readings have been put into this segment or an earlier one.
    stored: usize,
}

/// A window as it is written in its segment.
struct Entry {
    window: Window,
    is_provisional: bool,
    /// Whether it is a part of a window of the plan.
    is_part: bool,
    table: CountTable,
}

impl Journal {
    pub(super) fn new(query: &WindowQuery, plan: &Plan, part: Option<(u32, u32)>) -> Self {
        Self {
            query: SavedQuery::new(query, plan, part),
            subject: query.subject(),
            number: 0,
            entries: Vec::new(),
            bytes: 0,
            totals: Counts::default(),
            stored: 0,
        }
    }

    /// The segment with readings that are in no segment yet, as many as fit.
    pub(super) fn next_segment(&mut self, ledger: &Ledger) -> Option<Segment> {
        let read = ledger.read();
        let first = read.get(self.stored)?;
        if !self.has_room_for(&first.table) {
            self.number += 1;
            self.entries.clear();
            self.bytes = 0;
            self.totals = Counts::default();
        }
        for reading in &read[self.stored..] {
            if !self.has_room_for(&reading.table) {
                break;
            }
            self.add(reading, ledger.plan());
        }
        Some(Segment {
            name: segment_name(self.number),
            json: self.to_json(),
        })
    }

    /// A segment's table has totals, which must not overflow.
    fn has_room_for(&self, table: &CountTable) -> bool {
        let sum = self.totals.checked_add(table.totals());
        self.bytes <= SEGMENT_BYTES && sum.is_some()
    }

    fn add(&mut self, reading: &Reading, plan: &Plan) {
        let sum = self.totals.checked_add(reading.table.totals());
        self.totals = sum.unwrap_or(self.totals);
        self.bytes += json_of(&reading.table.saved_window()).len();
        let after = self
            .entries
            .partition_point(|entry| entry.window < reading.window);
        let entry = Entry {
            window: reading.window,
            is_provisional: reading.origin == Origin::Read { provisional: true },
            is_part: !plan
                .overlapping(reading.window)
                .any(|own| own == reading.window),
            table: reading.table.clone(),
        };
        self.entries.insert(after, entry);
        self.stored += 1;
    }

    fn to_json(&self) -> String {
        let starts = |has: fn(&Entry) -> bool| {
            let entries = self.entries.iter().filter(|entry| has(entry));
            entries.map(|entry| entry.window.start()).collect()
        };
        let windows = self.entries.iter();
        let windows = windows.filter_map(|entry| entry.table.saved_window());
        let mut json = json_of(&SavedSegment {
            format: FORMAT,
            digest: "",
            query: &self.query,
            segment: self.number,
            provisional: starts(|entry| entry.is_provisional),
            parts: starts(|entry| entry.is_part),
            table: SavedTable::new(&self.subject, self.totals, windows.collect()),
        });
        // What was just written can be read.
        if let Ok(document) = Document::read(json.as_bytes()) {
            let (place, digest) = (document.digest_place(), document.digest());
            json.insert_str(place.start + 1, &digest);
        }
        json
    }

    /// Refuses a segment of another query or number.
    fn check(&self, document: &Document<'_>) -> Result<()> {
        let expected = json_of(&self.query);
        let expected = Tree::read_fields(expected.as_bytes()).unwrap_or_default();
        let expected = fields_of(expected, QUERY, "$.query")?;
        for ((name, found), expected) in QUERY.iter().zip(document.query).zip(expected) {
            document.check(&format!("$.query.{name}"), found, expected)?;
        }
        document.check("$.segment", document.segment, &self.number.to_string())
    }

    /// Loads a stored segment.
    pub(super) fn load(&mut self, ledger: &mut Ledger, name: &str, json: &[u8]) -> Result<()> {
        if ledger.has_started() {
            let message = "load segments before the first step of the collect";
            return Err(Error::new(Code::OutOfOrder, message));
        }
        let expected = segment_name(self.number);
        if name != expected {
            let message = format!("want {expected}: load each segment once, in order");
            return Err(Error::argument("name", Code::InvalidArgument, message));
        }
        let document = Document::read(json)?;
        self.check(&document)?;
        let readings = self.readings_of(&document, ledger)?;
        // Last, so that a mistake is named where it is, if it can be.
        let digest = format!("\"{}\"", document.digest());
        document.check("$.digest", document.written_digest, &digest)?;
        for reading in readings {
            ledger.put_before(reading);
        }
        self.number += 1;
        Ok(())
    }

    /// The windows of a segment that need not be read again.
    fn readings_of(&self, document: &Document<'_>, ledger: &Ledger) -> Result<Vec<Reading>> {
        let mut provisional = document.starts("$.provisional", document.provisional)?;
        let mut parts = document.starts("$.parts", document.parts)?;
        let table = document.table()?;
        if table.subject != self.subject {
            return Err(invalid(
                "$.table",
                "want a table with the counts of this query",
            ));
        }
        let mut readings = Vec::new();
        for (index, (window, table)) in table.split().enumerate() {
            let start = window.start().to_string();
            if let Err(message) = check_window(window, ledger, taken(&mut parts, &start)) {
                return Err(invalid(&format!("$.table.windows[{index}]"), message));
            }
            if !taken(&mut provisional, &start) {
                readings.push(Reading {
                    window,
                    table,
                    origin: Origin::Stored,
                });
            }
        }
        for (path, left) in [("$.provisional", provisional), ("$.parts", parts)] {
            if !left.is_empty() {
                let message = "want the starts of windows of the table, each at most once";
                return Err(invalid(path, message));
            }
        }
        Ok(readings)
    }
}

/// Whether a start was among those left; it is taken out.
fn taken(starts: &mut Vec<Cow<'_, str>>, start: &str) -> bool {
    let place = starts.iter().position(|other| other == start);
    place.map(|place| starts.swap_remove(place)).is_some()
}

/// Says what is wrong with a stored window, which is a part of a window of the plan or all of it.
fn check_window(window: Window, ledger: &Ledger, is_part: bool) -> Result<(), String> {
    let mut around = ledger.plan().overlapping(window);
    let Some(around) = around.find(|own| own.contains(window)) else {
        return Err(format!("{window:?} is in no window of the plan"));
    };
    let overlapping = ledger.overlapping(window).iter();
    let mut stored = overlapping.filter(|reading| reading.origin == Origin::Stored);
    if let Some(Reading { window: other, .. }) = stored.next() {
        return Err(format!(
            "{window:?} overlaps {other:?} of an earlier segment"
        ));
    }
    if is_part == (around == window) {
        return Err(format!(
            "{window:?} is no window of the plan, and no part that was stored"
        ));
    }
    Ok(())
}

/// A segment as it is read.
struct Document<'a> {
    json: &'a [u8],
    query: [&'a str; QUERY.len()],
    written_digest: &'a str,
    segment: &'a str,
    provisional: &'a str,
    parts: &'a str,
    table: &'a str,
}

impl<'a> Document<'a> {
    fn read(json: &'a [u8]) -> Result<Self> {
        let torn = |NoJson { problem, offset }| {
            let message = format!("this is no checkpoint, or a torn one: {problem}");
            invalid("$", message).with_offset(offset)
        };
        let document = Tree::read_fields(json).map_err(torn)?;
        // The format is checked first, because another format may have other fields.
        if let Some(format) = document.written("format") {
            check(json, "$.format", format, &format!("\"{FORMAT}\""))?;
        }
        let fields = fields_of(document, SEGMENT, "$")?;
        let [_, written_digest, query, segment, provisional, parts, table] = fields;
        let query = Tree::read_fields(query.as_bytes()).map_err(torn)?;
        Ok(Self {
            json,
            query: fields_of(query, QUERY, "$.query")?,
            written_digest,
            segment,
            provisional,
            parts,
            table,
        })
    }

    fn check(&self, path: &str, found: &str, expected: &str) -> Result<()> {
        check(self.json, path, found, expected)
    }

    /// Where the digest stands, with its quotes.
    fn digest_place(&self) -> Range<usize> {
        let start = offset_in(self.json, self.written_digest) as usize;
        start..start + self.written_digest.len()
    }

    /// The checksum of the document without its digest.
    fn digest(&self) -> String {
        let Range { start, end } = self.digest_place();
        checksum(&[&self.json[..start], &self.json[end..]])
    }

    /// Starts of windows.
    fn starts(&self, path: &str, written: &'a str) -> Result<Vec<Cow<'a, str>>> {
        let found = Tree::read(written.as_bytes()).ok();
        found.and_then(Tree::into_texts).ok_or_else(|| {
            let error = invalid(path, "want a list of timestamps");
            error.with_offset(offset_in(self.json, written))
        })
    }

    fn table(&self) -> Result<CountTable> {
        let found = self.table;
        CountTable::from_json(found.as_bytes()).map_err(|error| {
            let inside = error.path().and_then(|path| path.strip_prefix('$'));
            let path = format!("$.table{}", inside.unwrap_or_default());
            let offset = error
                .offset()
                .map(|offset| offset + offset_in(self.json, found));
            let error = invalid(&path, error.message());
            offset.map_or(error.clone(), |offset| error.with_offset(offset))
        })
    }
}

/// Refuses a value that differs from what this collect would write.
fn check(json: &[u8], path: &str, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let start: String = found.chars().take(120).collect();
    let message = format!("this is no checkpoint of this query: {start}, want {expected}");
    Err(invalid(path, message).with_offset(offset_in(json, found)))
}

/// The offset of a value in its document.
fn offset_in(json: &[u8], value: &str) -> u64 {
    (value.as_ptr().addr() - json.as_ptr().addr()) as u64
}

/// The fields with these names; the object must not have any others.
fn fields_of<'a, const N: usize>(
    object: Tree<'a>,
    names: [&str; N],
    path: &str,
) -> Result<[&'a str; N]> {
    let fields = object.into_fields(names);
    let written = fields.map(|fields| fields.map(|field| field.into_written().unwrap_or_default()));
    written.ok_or_else(|| {
        let names = names.join(", ");
        invalid(
            path,
            format!("this is no checkpoint: want an object of {names}"),
        )
    })
}

fn invalid(path: &str, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidCheckpoint, message.into()).with_path(path.to_owned())
}
