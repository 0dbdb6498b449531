//! What a collect has read, stored as it goes, and taken up again by another process.
//!
//! The state is stored in segments, each a small JSON document of some windows. The one that is being
//! filled is written anew with each window, until it is large enough; so what a window costs to
//! store does not grow with what was stored before.

use std::borrow::Cow;
use std::fmt;

use super::Collect;
use super::store::{Origin, Reading};
use crate::client::question::Question;
use crate::error::{Code, Error, Result};
use crate::plan::Plan;
use crate::table::{CountTable, Counts};
use crate::tree::Tree;
use crate::window::Window;

/// What each segment says it is; a change that old readers can't read gets a new number.
const FORMAT: &str = "tallyfold-checkpoint/1";

/// A segment with more bytes of windows than these gets no further ones.
const SEGMENT_BYTES: usize = 128 * 1024;

/// A part of a collect's state, for the host to store under its name: as a whole or not at all, in
/// place of what was there.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    /// Such as `segment-00003.json`.
    pub name: String,
    /// The document.
    pub json: String,
}

/// The name of the segment of that number, counted from 0.
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

/// A field of a segment, all of whose text is known before it is read: it is compared, not parsed.
struct Field {
    path: &'static str,
    /// What stands before the value: what ends the one above, and the name.
    key: &'static str,
    value: String,
}

/// What stands before the starts of the provisional windows, and before the table.
const PROVISIONAL: &str = ",\"provisional\":";
const TABLE: &str = ",\"table\":";

/// What has been stored, and what is to be stored next.
pub(super) struct Journal {
    /// What was asked for, and a fingerprint of whom. Not who asked.
    query: [Field; 9],
    /// The number of the segment that is being filled.
    number: u64,
    /// Its windows, in the order of time.
    entries: Vec<Entry>,
    /// How many bytes its windows take.
    bytes: usize,
    totals: Counts,
    /// How many of the store's readings are in this segment or an earlier one.
    stored: usize,
}

/// A window as it stands in its segment.
struct Entry {
    window: Window,
    is_provisional: bool,
    json: String,
}

impl Journal {
    pub(super) fn new(question: &Question, plan: &Plan, part: Option<(u32, u32)>) -> Self {
        Self {
            query: query_fields(question, plan, part),
            number: 0,
            entries: Vec::new(),
            bytes: 0,
            totals: Counts::default(),
            stored: 0,
        }
    }

    /// The field after those of the query.
    fn number_field(&self) -> Field {
        Field {
            path: "$.segment",
            key: "},\"segment\":",
            value: self.number.to_string(),
        }
    }

    /// The segment with the readings that no segment has yet, as many as fit.
    fn next_segment(&mut self, read: &[Reading]) -> Option<Segment> {
        let template = &read.get(self.stored)?.table;
        if !self.has_room_for(template) {
            self.number += 1;
            self.entries.clear();
            self.bytes = 0;
            self.totals = Counts::default();
        }
        for reading in &read[self.stored..] {
            if !self.has_room_for(&reading.table) {
                break;
            }
            self.add(reading);
        }
        Some(Segment {
            name: segment_name(self.number),
            json: self.to_json(template),
        })
    }

    /// A segment's table has totals, which must fit.
    fn has_room_for(&self, table: &CountTable) -> bool {
        let sum = self.totals.checked_add(table.totals());
        self.bytes <= SEGMENT_BYTES && sum.is_some()
    }

    fn add(&mut self, reading: &Reading) {
        let sum = self.totals.checked_add(reading.table.totals());
        self.totals = sum.unwrap_or(self.totals);
        let json = reading.table.save_windows();
        self.bytes += json.len();
        let after = self
            .entries
            .partition_point(|entry| entry.window < reading.window);
        let entry = Entry {
            window: reading.window,
            is_provisional: reading.origin == Origin::Read { provisional: true },
            json,
        };
        self.entries.insert(after, entry);
        self.stored += 1;
    }

    fn to_json(&self, template: &CountTable) -> String {
        let mut json = String::new();
        for Field { key, value, .. } in self.query.iter().chain([&self.number_field()]) {
            json.push_str(key);
            json.push_str(value);
        }
        let provisional = self.entries.iter().filter(|entry| entry.is_provisional);
        let starts: Vec<String> = provisional
            .map(|entry| entry.window.start().to_string())
            .collect();
        json.push_str(PROVISIONAL);
        // Only strings are written, which can't fail.
        json.push_str(&serde_json::to_string(&starts).unwrap_or_default());
        let windows: Vec<&str> = self.entries.iter().map(|entry| &*entry.json).collect();
        json.push_str(TABLE);
        json.push_str(&template.to_json_of(self.totals, &windows.join(",")));
        json.push('}');
        json
    }
}

/// The fields that say what was asked for. None of their texts has a character that JSON escapes.
fn query_fields(question: &Question, plan: &Plan, part: Option<(u32, u32)>) -> [Field; 9] {
    let field = |path, key, value| Field { path, key, value };
    let text = |text: &str| format!("\"{text}\"");
    let names = |names: Vec<&str>| serde_json::to_string(&names).unwrap_or_default();
    let cluster = text(&question.cluster());
    let metric = text(question.metric().as_str());
    let (start, end) = (plan.range().start(), plan.range().end());
    let (start, end) = (text(&start.to_string()), text(&end.to_string()));
    let requested = names(question.requested().names());
    let kept = names(question.kept().names());
    let window = text(&plan.step().to_string());
    let part = part.map_or_else(
        || "null".to_owned(),
        |(index, of)| format!("[{index},{of}]"),
    );
    [
        field("$.format", "{\"format\":", text(FORMAT)),
        field("$.query.cluster", ",\"query\":{\"cluster\":", cluster),
        field("$.query.metric", ",\"metric\":", metric),
        field("$.query.start", ",\"start\":", start),
        field("$.query.end", ",\"end\":", end),
        field("$.query.dimensions", ",\"dimensions\":", requested),
        field("$.query.group_by", ",\"group_by\":", kept),
        field("$.query.window", ",\"window\":", window),
        field("$.query.part", ",\"part\":", part),
    ]
}

impl Collect {
    /// The next segment to store, if there is one: with what was read since the last one was given.
    /// To be asked for after each settling until there is none. What
    /// [`have`](crate::CollectOptions::have) had is not stored.
    ///
    /// No segment holds a secret, a token or an address. [`Collect::load`] wants it as it was
    /// written, byte for byte.
    pub fn unsaved(&mut self) -> Option<Segment> {
        self.journal.next_segment(self.store.read())
    }

    /// Takes up a stored segment. They are to be loaded before the first [`Collect::next`], one
    /// after the other, from [`segment_name`] of 0 on until there is none. What they hold is not read
    /// again, but for the windows that are provisional. Where `have` has the same time, the
    /// segment's counts take its place.
    ///
    /// ```
    /// # use tallyfold::{Collect, Result, segment_name};
    /// # fn stored(name: &str) -> Option<Vec<u8>> { None }
    /// fn resume(collect: &mut Collect) -> Result<()> {
    ///     for name in (0..).map(segment_name) {
    ///         let Some(json) = stored(&name) else { break };
    ///         collect.load(&name, &json)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// `invalid_checkpoint`, with the JSON path and often the byte offset, for what is torn, was
    /// changed, or is of another query; `invalid_argument` for another name than the next one's;
    /// `out_of_order` once a window has been given. Nothing has changed then.
    pub fn load(&mut self, name: &str, json: &[u8]) -> Result<()> {
        if self.queue.has_started() {
            let message = "load segments before the first step of the collect";
            return Err(Error::new(Code::OutOfOrder, message));
        }
        let expected = segment_name(self.journal.number);
        if name != expected {
            let message = format!("want {expected}: load the segments in their order, each once");
            return Err(Error::argument("name", Code::InvalidArgument, message));
        }
        let mut document = Document { json, at: 0 };
        let number = self.journal.number_field();
        let mut fields = self.journal.query.iter().chain([&number]).peekable();
        while let Some(field) = fields.next() {
            let next = fields.peek().map_or(PROVISIONAL, |next| next.key);
            document.take_field(field, next)?;
        }
        for reading in self.readings_of(document)? {
            self.store.put_before(reading);
        }
        self.journal.number += 1;
        Ok(())
    }

    /// The windows of a segment that are not to be read again.
    fn readings_of(&self, mut document: Document<'_>) -> Result<Vec<Reading>> {
        let mut provisional = document.take_provisional()?;
        let table = document.into_table()?;
        if !table.counts_all(self.question.metric(), self.question.kept()) {
            return Err(invalid("$.table", "want a table of the query's counts"));
        }
        let mut readings = Vec::new();
        for (index, (window, table)) in table.split().enumerate() {
            if let Err(message) = self.check_window(window) {
                return Err(invalid(&format!("$.table.windows[{index}]"), message));
            }
            let start = window.start().to_string();
            let place = provisional.iter().position(|other| *other == start);
            if let Some(place) = place {
                provisional.swap_remove(place);
            } else {
                readings.push(Reading {
                    window,
                    table,
                    origin: Origin::Stored,
                });
            }
        }
        if !provisional.is_empty() {
            let message = "want starts of the table's windows, each once";
            return Err(invalid("$.provisional", message));
        }
        Ok(readings)
    }

    /// Says what is wrong with a stored window.
    fn check_window(&self, window: Window) -> Result<(), String> {
        let mut around = self.plan.overlapping(window);
        if !around.any(|own| own.contains(window)) {
            return Err(format!("{window:?} is in no window of the plan"));
        }
        let overlapping = self.store.overlapping(window).iter();
        let mut stored = overlapping.filter(|reading| reading.origin == Origin::Stored);
        stored.next().map_or(Ok(()), |other| {
            let other = other.window;
            Err(format!(
                "{window:?} overlaps {other:?} of an earlier segment"
            ))
        })
    }
}

/// A segment as it is read.
struct Document<'a> {
    json: &'a [u8],
    /// How much of it has been read.
    at: usize,
}

impl<'a> Document<'a> {
    /// Takes a field that must have the value that it would be written with. What follows it says
    /// where another value would end.
    fn take_field(&mut self, field: &Field, next: &str) -> Result<()> {
        self.take(field.key, field.path)?;
        let found = self.until(next);
        if found == Some(field.value.as_bytes()) {
            self.at += field.value.len();
            return Ok(());
        }
        let found = String::from_utf8_lossy(found.unwrap_or(&self.json[self.at..]));
        let found: String = found.chars().take(120).collect();
        let message = format!(
            "this is no checkpoint of this query: {found}, want {}",
            field.value
        );
        Err(self.refuse(field.path, message))
    }

    /// The starts of the provisional windows.
    fn take_provisional(&mut self) -> Result<Vec<String>> {
        let path = "$.provisional";
        self.take(PROVISIONAL, path)?;
        let found = self.until(TABLE).unwrap_or_default();
        let starts: Option<Tree<'_>> = serde_json::from_slice(found).ok();
        let starts = starts.and_then(Tree::into_texts);
        let starts = starts.ok_or_else(|| self.refuse(path, "want a list of timestamps"))?;
        self.at += found.len();
        Ok(starts.into_iter().map(Cow::into_owned).collect())
    }

    /// The table, after which only the segment ends.
    fn into_table(mut self) -> Result<CountTable> {
        let path = "$.table";
        self.take(TABLE, path)?;
        let rest = self.json[self.at..].trim_ascii_end();
        let json = rest
            .strip_suffix(b"}")
            .ok_or_else(|| self.refuse(path, "the segment has no end: it is torn"))?;
        CountTable::from_json(json).map_err(|error| {
            let inside = error.path().and_then(|path| path.strip_prefix('$'));
            let path = format!("{path}{}", inside.unwrap_or_default());
            let offset = error.offset().map(|offset| offset + self.at as u64);
            let error = invalid(&path, error.message());
            offset.map_or(error.clone(), |offset| error.with_offset(offset))
        })
    }

    fn take(&mut self, key: &str, path: &str) -> Result<()> {
        if !self.json[self.at..].starts_with(key.as_bytes()) {
            return Err(self.refuse(
                path,
                format!("this is no checkpoint, or a torn one: want {key}"),
            ));
        }
        self.at += key.len();
        Ok(())
    }

    /// What stands before the next time that a key is there.
    fn until(&self, key: &str) -> Option<&'a [u8]> {
        let rest = &self.json[self.at..];
        let mut places = rest.windows(key.len());
        let end = places.position(|place| place == key.as_bytes())?;
        Some(&rest[..end])
    }

    fn refuse(&self, path: &str, message: impl Into<String>) -> Error {
        invalid(path, message).with_offset(self.at as u64)
    }
}

fn invalid(path: &str, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidCheckpoint, message).with_path(path.to_owned())
}
