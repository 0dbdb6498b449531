//! The position of a follow, for another process that resumes from there.

use serde::Serialize;

use super::follow::{Follow, Open};
use crate::code::Code;
use crate::counts::metric::Metric;
use crate::counts::part::Part;
use crate::counts::saved::SavedTable;
use crate::counts::table::CountTable;
use crate::error::{Error, Result};
use crate::keeper::{DocumentKind, Stored, invalid, is_sealed};
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;
use crate::wire::json::writer::json_of;

const KIND: DocumentKind = DocumentKind { format: "tallyfold-follow/2", what: "state" };

/// The previous format, whose states do not have `revisions`, and how its states begin.
const FORMAT_1: &str = "tallyfold-follow/1";
const START_1: &str = r#"{"format":"tallyfold-follow/1","#;

/// How the states of all versions begin.
const START: &str = r#"{"format":"tallyfold-follow/"#;

/// The longest time that a state can hold.
const LONGEST_MS: u64 = i64::MAX.unsigned_abs();

/// The fields of a state, and the fields of its query.
const STATE: [&str; 9] =
    ["format", "digest", "query", "next", "unread", "same_ms", "read_ms", "revisions", "table"];
const QUERY: [&str; 5] = ["cluster", "metric", "dimensions", "group_by", "window"];

/// A state as it is stored.
#[derive(Serialize)]
struct SavedFollow<'a> {
    query: SavedQuery,
    /// Where the next window starts.
    next: Option<Timestamp>,
    /// The edges of open windows that were not read.
    unread: Vec<Timestamp>,
    /// For each window of the table, how long its counts were the same.
    same_ms: Vec<String>,
    /// For each of them, when it was read last by the wall clock, in milliseconds since 1970.
    read_ms: Vec<String>,
    /// For each of them, how many revisions were returned: the number of its next revision.
    revisions: Vec<String>,
    /// The last readings of the other open windows.
    table: Option<SavedTable<'a>>,
}

#[derive(Serialize)]
struct SavedQuery {
    cluster: String,
    metric: Metric,
    dimensions: Vec<&'static str>,
    group_by: Vec<&'static str>,
    window: String,
}

impl Follow {
    /// The position of the follow, as JSON. From there, a later follow resumes after the revisions that were returned so far,
    /// even in another process ([`FollowOptions::state`](crate::FollowOptions::state)). It contains no secret and no token.
    ///
    /// Store it together with the results of the last revision, atomically. Then no revision is lost
    /// and none is processed twice, whenever the process ends.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::{Dimension, FollowOptions, Metric, TimeStep, Timestamp};
    /// # let mut host = Host::new()?;
    /// # let step = TimeStep::parse("15m")?;
    /// # let start = Timestamp::parse("2026-01-02T12:00:00Z")?;
    /// let options = FollowOptions::new(Metric::EventDelivery, start, &[Dimension::Integration], step);
    /// let state = host.machine.follow(&options)?.state();
    /// // Later, in another process:
    /// let follow = host.machine.follow(&options.state(state))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn state(&self) -> String {
        let (read, unread): (Vec<&Open>, Vec<&Open>) =
            self.open.iter().partition(|open| open.table.is_some());
        let parts: Vec<&Part> =
            read.iter().filter_map(|open| open.table.as_ref()?.parts.first()).collect();
        let subject = self.query.subject();
        let edges = |open: &&Open| [open.window.start(), open.window.end()];
        KIND.write(&json_of(&SavedFollow {
            query: self.saved_query(),
            next: self.next_start.or(self.end.max(self.resumed_at)),
            unread: unread.iter().flat_map(edges).collect(),
            // A clock may have jumped by any time, but the numbers are read as signed.
            same_ms: texts(&read, |open| open.same_for_ms.min(LONGEST_MS).to_string()),
            read_ms: texts(&read, |open| open.read_ms.to_string()),
            revisions: texts(&read, |open| open.revisions.to_string()),
            table: SavedTable::of_windows(&subject, &parts),
        }))
    }

    /// Whether a text is the state of a follow. A caller may store a state of its own with each revision instead.
    ///
    /// # Errors
    /// `invalid_argument` for an empty text, `invalid_checkpoint` for a state of a follow that is incomplete or was changed.
    pub fn is_state(text: &str) -> Result<bool> {
        let refused = |code, message: &str| Err(Error::argument("state", code, message));
        if text.trim().is_empty() {
            let message = "want the state of the follow after the revision, not an empty text";
            return refused(Code::InvalidArgument, message);
        }
        let is_state = text.starts_with(START);
        if is_state && !is_sealed(text.as_bytes()) {
            let message = "want the state of the follow, and this was damaged or changed";
            return refused(Code::InvalidCheckpoint, message);
        }
        Ok(is_state)
    }

    fn saved_query(&self) -> SavedQuery {
        SavedQuery {
            cluster: self.query.cluster(),
            metric: self.query.query().metric(),
            dimensions: self.query.query().requested().names(),
            group_by: self.query.subject().dimensions.names(),
            window: self.step.to_string(),
        }
    }

    /// Resumes from a state.
    pub(super) fn take_up(&mut self, state: &str) -> Result<()> {
        let is_1 = state.starts_with(START_1);
        let format = if is_1 { FORMAT_1 } else { KIND.format };
        let kind = DocumentKind { format, ..KIND };
        let stored = Stored::read(state.as_bytes(), kind, &STATE)?;
        stored.check_query(
            &json_of(&self.saved_query()),
            &QUERY,
            &[],
            &self.query.fingerprint(),
        )?;
        let next = stored.field("next");
        let next_start = Timestamp::parse(next.trim_matches('"'));
        let next_start =
            next_start.map_err(|error| stored.wrong("$.next", error.message(), next))?;
        let edges = stored.texts("unread", "timestamps")?;
        for edges in edges.chunks(2) {
            let window = match edges {
                [start, end] => Window::parse(start, end).ok(),
                _ => None,
            };
            let window = window.ok_or_else(|| {
                stored.wrong(
                    "$.unread",
                    "want the start and the end of each window",
                    stored.field("unread"),
                )
            })?;
            self.open.push(Open::new(window));
        }
        let same_ms = stored.numbers("same_ms")?;
        let read_ms = stored.numbers("read_ms")?;
        let table = stored.table()?;
        let parts = table.as_ref().map_or(&[][..], |table| &table.parts);
        let is_alike = |table: &CountTable| table.subject == self.query.subject();
        let revisions = if is_1 {
            // At least one revision was returned, and none had a number.
            vec![1; parts.len()]
        } else {
            stored.numbers("revisions")?
        };
        let has_all = [same_ms.len(), read_ms.len(), revisions.len()] == [parts.len(); 3];
        if !has_all || !table.as_ref().is_none_or(is_alike) {
            let message =
                "want a table with the counts of this query, and a number for each window";
            return Err(invalid("$.table", message));
        }
        for (at, part) in parts.iter().enumerate() {
            let mut open = Open::new(part.window);
            let same_ms = same_ms[at].unsigned_abs();
            open.table = Some(CountTable::of_response(self.query.subject(), part.clone()));
            (open.same_for_ms, open.same_before_ms) = (same_ms, same_ms);
            open.revisions = u32::try_from(revisions[at]).unwrap_or(u32::MAX);
            open.rest_since(read_ms[at], self.reread_ms);
            self.open.push(open);
        }
        self.open.sort_unstable_by_key(|open| open.window);
        stored.check_digest()?;
        // A follow that has not begun may begin in the future.
        let begun = Some(next_start).filter(|next| self.next_start != Some(*next));
        let read = read_ms.iter().copied().filter_map(Timestamp::from_unix_ms);
        self.latest = read.chain(begun).max();
        self.resumed_at = Some(next_start);
        self.next_start = Some(next_start).filter(|next| self.end.is_none_or(|end| *next < end));
        Ok(())
    }
}

fn texts(all: &[&Open], text: fn(&Open) -> String) -> Vec<String> {
    all.iter().map(|open| text(open)).collect()
}
