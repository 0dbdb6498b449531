//! Stores what a collect has read while it runs, so that another process can continue it.
//!
//! The state is stored in segments, each a small JSON document of some windows. If every window is kept, the
//! last segment is rewritten with each window until it is large enough; then a new one begins. If windows are
//! added up, there is a segment for each kept step, which is rewritten with each window of that step. So storing
//! a window takes the same time however many were stored before.
//!
//! A checkpoint can be used for every range of its query: a collect uses the stored windows that lie in its range.

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;
use tallyfold_engine::Counts;

use super::keep::Keep;
use super::ledger::{Ledger, Origin};
use crate::code::Code;
use crate::counts::metric::Metric;
use crate::counts::part::Part;
use crate::counts::saved::{SavedTable, SavedWindow};
use crate::error::{Error, Result};
use crate::keeper::{DocumentKind, Stored, invalid, segment_name};
use crate::ranges::plan::Plan;
use crate::ranges::window_query::WindowQuery;
use crate::time::timestamp::Timestamp;
use crate::time::window::{Window, uncovered};
use crate::wire::json::writer::json_of;

const KIND: DocumentKind = DocumentKind { format: "tallyfold-checkpoint/3", what: "checkpoint" };

/// Once the windows of a segment take more bytes than this, the next window goes into a new
/// segment.
const SEGMENT_BYTES: usize = 128 * 1024;

/// A part of a collect's state. The host stores it under its name, and replaces what was stored there
/// atomically.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    /// Such as `segment-00003.json`.
    pub name: String,
    /// The document.
    pub json: String,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("name", &self.name)
            .field("bytes", &self.json.len())
            .finish()
    }
}

/// The fields of a segment, and the fields of its query.
const SEGMENT: [&str; 6] = ["format", "digest", "query", "segment", "parts", "table"];
const QUERY: [&str; 9] =
    ["cluster", "metric", "start", "end", "dimensions", "group_by", "window", "keep", "part"];
/// The fields in which the stored query may differ: the range.
const RANGE: [&str; 2] = ["start", "end"];

/// A segment as it is stored.
#[derive(Serialize)]
struct SavedSegment<'a> {
    query: &'a SavedQuery,
    segment: u64,
    /// The starts of windows that do not begin and end where windows of the plan do, such as halves.
    parts: Vec<Timestamp>,
    /// `None` for a segment whose windows were dropped.
    table: Option<SavedTable<'a>>,
}

/// The query, and the identity of the client.
#[derive(Serialize)]
struct SavedQuery {
    cluster: String,
    metric: Metric,
    start: Timestamp,
    end: Timestamp,
    dimensions: Vec<&'static str>,
    group_by: Vec<&'static str>,
    window: String,
    keep: String,
    part: Option<(u32, u32)>,
}

impl SavedQuery {
    fn new(query: &WindowQuery, plan: &Plan, keep: Keep, part: Option<(u32, u32)>) -> Self {
        Self {
            cluster: query.cluster(),
            metric: query.query().metric(),
            start: plan.range().start(),
            end: plan.range().end(),
            dimensions: query.query().requested().names(),
            group_by: query.subject().dimensions.names(),
            window: plan.step().to_string(),
            keep: keep.text(),
            part,
        }
    }
}

/// What has been stored, and what must be stored next.
pub(super) struct Journal {
    query: SavedQuery,
    /// What segments may have in place of the identity: a fingerprint of the address.
    fingerprint: String,
    /// Windows that were read and are in no segment, in the order of reading.
    unsaved: VecDeque<Window>,
    /// The segments that may be written again.
    open: Vec<Open>,
    /// The number of the next new segment.
    next: u64,
    /// Segments whose windows will be dropped.
    old: Vec<u64>,
    /// Segments without any window, which are used before there are new ones; the last one first.
    free: Vec<u64>,
    drops_old: bool,
}

/// A segment that may be written again.
struct Open {
    number: u64,
    holds: Holds,
}

/// Which windows a segment holds.
enum Holds {
    /// All windows of a kept step.
    Step(Window),
    /// These windows.
    Windows {
        windows: Vec<Window>,
        /// How many bytes they take.
        bytes: usize,
        totals: Counts,
    },
}

impl Journal {
    pub(super) fn new(
        query: &WindowQuery,
        plan: &Plan,
        keep: Keep,
        part: Option<(u32, u32)>,
        drops_old: bool,
    ) -> Self {
        Self {
            query: SavedQuery::new(query, plan, keep, part),
            fingerprint: query.fingerprint(),
            unsaved: VecDeque::new(),
            open: Vec::new(),
            next: 0,
            old: Vec::new(),
            free: Vec::new(),
            drops_old,
        }
    }

    /// Records a window that was read.
    pub(super) fn note(&mut self, window: Window) {
        self.unsaved.push_back(window);
    }

    /// The next segment that must be stored; `None` if there is none.
    pub(super) fn next_segment(&mut self, ledger: &Ledger) -> Option<Segment> {
        if let Some(number) = self.old.pop() {
            self.free.push(number);
            return Some(self.segment(number, &[], ledger));
        }
        while let Some(first) = self.unsaved.front() {
            let Some(step) = ledger.around(*first) else {
                return self.next_windows(ledger);
            };
            if let Some(segment) = self.next_step(step, ledger) {
                return Some(segment);
            }
        }
        None
    }

    /// The segment of a kept step. There is none if its sums overflow: the collect itself ends with that error.
    fn next_step(&mut self, step: Window, ledger: &Ledger) -> Option<Segment> {
        self.unsaved.retain(|window| !step.contains(*window));
        let known = ledger.overlapping(step).iter();
        let stored = known.filter(|reading| reading.origin != Origin::Given);
        let parts: Vec<&Part> = stored.map(|reading| &reading.part).collect();
        let mut totals = parts.iter().map(|part| part.rows.totals());
        totals.try_fold(Counts::default(), Counts::checked_add)?;
        let is_it = |open: &&Open| matches!(open.holds, Holds::Step(other) if other == step);
        let number = match self.open.iter().find(is_it) {
            Some(open) => open.number,
            None => self.begin(Holds::Step(step)),
        };
        Some(self.segment(number, &parts, ledger))
    }

    /// The segment with windows that are in no segment yet, as many as fit.
    fn next_windows(&mut self, ledger: &Ledger) -> Option<Segment> {
        let has_room = |open: &Open, part: &Part| match &open.holds {
            Holds::Windows { bytes, totals, .. } => {
                // A segment's table has totals, which must not overflow.
                *bytes <= SEGMENT_BYTES && totals.checked_add(part.rows.totals()).is_some()
            }
            Holds::Step(_) => false,
        };
        let mut is_first = true;
        while let Some(part) = self.unsaved.front().and_then(|window| ledger.part(*window)) {
            if !self.open.first().is_some_and(|open| has_room(open, part)) {
                if !is_first {
                    break;
                }
                self.open.clear();
                self.begin(Holds::Windows {
                    windows: Vec::new(),
                    bytes: 0,
                    totals: Counts::default(),
                });
            }
            is_first = false;
            self.unsaved.pop_front();
            if let Some(Open { holds: Holds::Windows { windows, bytes, totals }, .. }) =
                self.open.first_mut()
            {
                let after = windows.partition_point(|other| *other < part.window);
                windows.insert(after, part.window);
                *bytes += json_of(&SavedWindow(part)).len();
                *totals = totals.checked_add(part.rows.totals()).unwrap_or(*totals);
            }
        }
        let open = self.open.first()?;
        let Holds::Windows { windows, .. } = &open.holds else {
            return None;
        };
        let parts: Vec<&Part> = windows.iter().filter_map(|window| ledger.part(*window)).collect();
        Some(self.segment(open.number, &parts, ledger))
    }

    /// Begins a segment and returns its number.
    fn begin(&mut self, holds: Holds) -> u64 {
        let number = self.free.pop().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.open.push(Open { number, holds });
        number
    }

    /// A segment with some windows.
    fn segment(&self, number: u64, parts: &[&Part], ledger: &Ledger) -> Segment {
        let is_part = |part: &&&Part| !is_of_whole_windows(part.window, ledger.plan());
        let json = KIND.write(&json_of(&SavedSegment {
            query: &self.query,
            segment: number,
            parts: parts.iter().filter(is_part).map(|part| part.window.start()).collect(),
            table: SavedTable::of_windows(ledger.subject(), parts),
        }));
        Segment { name: segment_name(number), json }
    }

    /// The name of the stored segment that is loaded next.
    pub(super) fn wanted(&self) -> String {
        segment_name(self.next)
    }

    /// Loads a stored segment.
    pub(super) fn load(&mut self, ledger: &mut Ledger, name: &str, json: &[u8]) -> Result<()> {
        if ledger.has_started() {
            let message = "load segments before the first step of the collect";
            return Err(Error::new(Code::OutOfOrder, message));
        }
        let expected = self.wanted();
        if !name.ends_with(&expected) {
            let message = format!("want {expected}: load each segment once, in order");
            return Err(Error::argument("name", Code::InvalidArgument, message));
        }
        let parts = self.parts_of(json, ledger).map_err(|error| in_segment(error, name))?;
        self.take_up(parts, ledger);
        self.next += 1;
        Ok(())
    }

    /// The windows of a segment.
    fn parts_of(&self, json: &[u8], ledger: &Ledger) -> Result<Vec<Part>> {
        let segment = Stored::read(json, KIND, &SEGMENT)?;
        let query =
            segment.check_query(&json_of(&self.query), &QUERY, &RANGE, &self.fingerprint)?;
        segment.check("$.segment", segment.field("segment"), &self.next.to_string())?;
        let [start, end] = RANGE.map(|name| query.written(name).unwrap_or_default());
        let range = Window::parse(start.trim_matches('"'), end.trim_matches('"'))
            .map_err(|error| segment.wrong("$.query.start", error.message(), start))?;
        let mut starts = segment.texts("parts", "timestamps")?;
        let plan = ledger.plan().of_range(range);
        let table = segment.table()?;
        let table = table.as_ref();
        if table.is_some_and(|table| table.subject != *ledger.subject()) {
            return Err(invalid("$.table", "want a table with the counts of this query"));
        }
        let parts = table.map(|table| table.parts.clone()).unwrap_or_default();
        for (index, part) in parts.iter().enumerate() {
            let is_part = taken(&mut starts, &part.window.start().to_string());
            if let Err(message) = check_window(part.window, &plan, ledger.kept(), is_part) {
                return Err(invalid(&format!("$.table.windows[{index}]"), message));
            }
        }
        if !starts.is_empty() {
            let message = "want the starts of windows of the table, each at most once";
            return Err(invalid("$.parts", message));
        }
        segment.check_digest()?;
        Ok(parts)
    }

    /// Uses the windows of a segment that need not be read again.
    fn take_up(&mut self, parts: Vec<Part>, ledger: &mut Ledger) {
        let number = self.next;
        let Some(last) = parts.last().map(|part| part.window) else {
            self.free.push(number);
            return;
        };
        let range = ledger.plan().range();
        if self.drops_old && last.end() <= range.start() {
            self.old.push(number);
            return;
        }
        let step = ledger.around(last);
        let mut is_used = true;
        for part in parts {
            let window = part.window;
            let stored = ledger.overlapping(window).iter();
            let mut stored = stored.filter(|reading| reading.origin == Origin::Stored);
            is_used &= ledger.is_inside(window);
            if ledger.is_usable(&part) && stored.next().is_none() {
                ledger.put(part, Origin::Stored);
            }
        }
        // If a segment also has other windows, writing it again would lose them.
        if let Some(step) = step.filter(|_| is_used) {
            self.open.push(Open { number, holds: Holds::Step(step) });
        }
    }
}

/// Adds to an error which segment it is about, and what to do.
fn in_segment(mut error: Error, name: &str) -> Error {
    error.add(format!(
        " (in {name}); use another checkpoint, or remove this segment and those after it: their windows are read again"
    ));
    error
}

/// Removes a start from the list. Returns whether it was there.
fn taken(starts: &mut Vec<String>, start: &str) -> bool {
    let place = starts.iter().position(|other| other == start);
    place.map(|place| starts.swap_remove(place)).is_some()
}

/// Checks a stored window. The error is the message.
fn check_window(window: Window, plan: &Plan, keep: Keep, is_part: bool) -> Result<(), String> {
    if !uncovered(window, &mut plan.overlapping(window)).is_empty() {
        return Err(format!("{window:?} is in no window of the plan"));
    }
    let mut around =
        plan.overlapping(window).map(|own| keep.around(own, plan.range()).unwrap_or(own));
    if !around.all(|around| around.contains(window)) {
        return Err(format!("{window:?} is more than what is kept together"));
    }
    if is_part == is_of_whole_windows(window, plan) {
        return Err(format!("{window:?} is neither a window of the plan nor a stored part"));
    }
    Ok(())
}

/// Whether a window begins and ends where windows of the plan do.
fn is_of_whole_windows(window: Window, plan: &Plan) -> bool {
    let starts = plan.overlapping(window).next().map(Window::start);
    let ends = plan.overlapping(window).next_back().map(Window::end);
    (starts, ends) == (Some(window.start()), Some(window.end()))
}
