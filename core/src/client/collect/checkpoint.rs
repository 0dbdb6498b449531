//! What a collect has read, stored as it goes, and taken up again by another process.
//!
//! The state is stored in segments, each a small JSON document of some windows. The one that is being
//! filled is written anew with each window, until it is large enough; so what a window costs to
//! store does not grow with what was stored before.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Collect;
use super::store::{Origin, Reading};
use crate::client::question::Question;
use crate::error::{Code, Error, Result};
use crate::plan::Plan;
use crate::table::saved::{SavedTable, unreadable};
use crate::table::{CountTable, Counts};
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

/// A segment up to its table, as it is written.
#[derive(Serialize)]
struct Head<'a> {
    format: &'static str,
    query: &'a SavedQuery,
    segment: u64,
    provisional: Vec<SavedWindow>,
}

/// A segment as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSegment {
    format: String,
    query: SavedQuery,
    segment: u64,
    provisional: Vec<SavedWindow>,
    table: SavedTable,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedWindow {
    start: String,
    end: String,
}

/// What was asked for. Neither who asked, nor whom.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedQuery {
    metric: String,
    start: String,
    end: String,
    dimensions: Vec<String>,
    group_by: Vec<String>,
    window: String,
    part: Option<(u32, u32)>,
}

/// What has been stored, and what is to be stored next.
pub(super) struct Journal {
    query: SavedQuery,
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
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let query = SavedQuery {
            metric: question.metric().as_str().to_owned(),
            start: plan.range().start().to_string(),
            end: plan.range().end().to_string(),
            dimensions: names(question.requested().names()),
            group_by: names(question.kept().names()),
            window: plan.step().to_string(),
            part,
        };
        Self {
            query,
            number: 0,
            entries: Vec::new(),
            bytes: 0,
            totals: Counts::default(),
            stored: 0,
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
        let provisional = self.entries.iter().filter(|entry| entry.is_provisional);
        let head = Head {
            format: FORMAT,
            query: &self.query,
            segment: self.number,
            provisional: provisional
                .map(|entry| SavedWindow::from(entry.window))
                .collect(),
        };
        let windows: Vec<&str> = self.entries.iter().map(|entry| &*entry.json).collect();
        // Only strings and small integers are written, which can't fail.
        let mut json = serde_json::to_string(&head).unwrap_or_default();
        json.pop();
        json.push_str(",\"table\":");
        json.push_str(&template.to_json_of(self.totals, &windows.join(",")));
        json.push('}');
        json
    }
}

impl From<Window> for SavedWindow {
    fn from(window: Window) -> Self {
        Self {
            start: window.start().to_string(),
            end: window.end().to_string(),
        }
    }
}

impl Collect {
    /// The next segment to store, if there is one: with what was read since the last one was given.
    /// To be asked for after each settling until there is none. What
    /// [`have`](crate::CollectOptions::have) had is not stored.
    ///
    /// No segment holds a secret, a token or an address.
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
    /// `invalid_checkpoint`, with the JSON path or the byte offset, for what is torn, was changed, or is
    /// of another query; `invalid_argument` for another name than the next one's; `out_of_order`
    /// once a window has been given. Nothing has changed then.
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
        let saved: SavedSegment = serde_json::from_slice(json)
            .map_err(|error| unreadable(Code::InvalidCheckpoint, "checkpoint", json, &error))?;
        if saved.format != FORMAT {
            return Err(invalid("$.format", format!("want {FORMAT}")));
        }
        saved.query.check_like(&self.journal.query)?;
        if saved.segment != self.journal.number {
            let message = format!(
                "this is segment {}, and not {}",
                saved.segment, self.journal.number
            );
            return Err(invalid("$.segment", message));
        }
        for reading in self.readings_of(&saved)? {
            self.store.put_before(reading);
        }
        self.journal.number += 1;
        Ok(())
    }

    /// The windows of a segment that are not to be read again.
    fn readings_of(&self, saved: &SavedSegment) -> Result<Vec<Reading>> {
        let table = CountTable::from_saved(&saved.table).map_err(|error| {
            let path = error.path().and_then(|path| path.strip_prefix('$'));
            let path = format!("$.table{}", path.unwrap_or_default());
            invalid(&path, error.message().to_owned())
        })?;
        if !table.counts_all(self.question.metric(), self.question.kept()) {
            let message = "this is a table of something else than the query's counts";
            return Err(invalid("$.table", message.to_owned()));
        }
        let mut provisional = load_provisional(&saved.provisional)?;
        let mut readings = Vec::new();
        for (index, (window, table)) in table.split().enumerate() {
            self.check_window(window)
                .map_err(|message| invalid(&format!("$.table.windows[{index}]"), message))?;
            let place = provisional.iter().position(|other| *other == window);
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
        if let Some(window) = provisional.first() {
            let message = format!("{window:?} is no window of the table");
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

impl SavedQuery {
    /// Refuses a query that asks for something else.
    fn check_like(&self, wanted: &Self) -> Result<()> {
        differs("metric", &self.metric, &wanted.metric)?;
        differs("start", &self.start, &wanted.start)?;
        differs("end", &self.end, &wanted.end)?;
        differs("dimensions", &self.dimensions, &wanted.dimensions)?;
        differs("group_by", &self.group_by, &wanted.group_by)?;
        differs("window", &self.window, &wanted.window)?;
        differs("part", &self.part, &wanted.part)
    }
}

fn differs<T: PartialEq + Serialize>(field: &str, found: &T, wanted: &T) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let shown = |value: &T| serde_json::to_string(value).unwrap_or_default();
    let found: String = shown(found).chars().take(120).collect();
    let wanted = shown(wanted);
    let message = format!("this is a checkpoint of another query: {found}, want {wanted}");
    Err(invalid(&format!("$.query.{field}"), message))
}

fn load_provisional(saved: &[SavedWindow]) -> Result<Vec<Window>> {
    let windows = saved.iter().enumerate().map(|(index, saved)| {
        Window::parse(&saved.start, &saved.end).map_err(|error| {
            invalid(
                &format!("$.provisional[{index}]"),
                error.message().to_owned(),
            )
        })
    });
    windows.collect()
}

fn invalid(path: &str, message: String) -> Error {
    Error::new(Code::InvalidCheckpoint, message).with_path(path.to_owned())
}
