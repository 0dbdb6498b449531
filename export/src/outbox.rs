//! What a host stores while it pushes the revisions of a follow, so that none is lost or counted twice.

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;
use tallyfold::{
    Code, Error, Follow, Identity, Metric, Result, Revision, Timestamp, Window, Windowed,
};

use crate::formats::Format;
use crate::source::{Source, columns_of, owned_names};

const KIND: DocumentKind = DocumentKind {
    format: "tallyfold-outbox/1",
    what: "outbox",
};

/// What a host stores while it pushes the revisions of a follow.
///
/// It holds the state of the follow and the revision that is to be sent, so that both are stored in one step:
///
/// 1. [`Outbox::put`] takes a revision and the state of the follow after it. Store [`Outbox::to_json`].
/// 2. Push [`Outbox::pending`], with [`Outbox::in_doubt`]. Whenever the push says how many samples are finished, give that
///    to [`Outbox::finish`] and store the document again; at the push's end, call [`Outbox::clear`] and store it once more.
/// 3. However the push has ended, its report has the samples in doubt as `unsure`. Once you have shown the report, give this
///    number to [`Outbox::acknowledge`] and store the document. Until then, each push reports them.
/// 4. After a restart, push what is pending first, then follow on from [`Outbox::state`].
///
/// Only one process at a time may use a document. The process that stores a new document replaces only the one that it has
/// loaded, and otherwise sends nothing. A document doesn't show whether it is an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    state: Option<String>,
    /// Whose counts it sends.
    identity: Identity,
    /// Where it sends them to.
    destination: Option<String>,
    pending: Option<Pending>,
    /// How many samples are in doubt, and were in no report of a push yet.
    in_doubt: u64,
}

/// A revision that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingChanges {
    /// The name of the format that it is sent in.
    pub format: String,
    /// Its window.
    pub window: Window,
    /// Its number.
    pub revision: u32,
    /// How many of its samples are finished.
    pub finished: u64,
    /// How many samples it has.
    pub samples: u64,
    /// The sums of all its changes: success, errors and filtered.
    pub changes: [i128; 3],
}

/// The changes of a revision, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pending {
    /// The format that they are sent in.
    export: Format,
    /// How many samples are finished.
    finished: u64,
    metric: Option<Metric>,
    dimensions: Vec<String>,
    start: Timestamp,
    end: Timestamp,
    revision: u32,
    /// The values of each group, and its changes as texts.
    changes: Vec<(Vec<String>, [String; 3])>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedOutbox {
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    pending: Option<Pending>,
    #[serde(default, skip_serializing_if = "is_none")]
    in_doubt: u64,
}

impl Outbox {
    /// Reads a document that [`Outbox::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` for one that is torn or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let SavedOutbox {
            state,
            identity,
            destination,
            pending,
            in_doubt,
        } = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        let identity = identity
            .as_deref()
            .map_or_else(Identity::default, Identity::new);
        let outbox = Self {
            state,
            identity,
            destination,
            pending,
            in_doubt,
        };
        outbox.source()?;
        Ok(outbox)
    }

    /// The document to store, as JSON. It holds no secret.
    #[must_use]
    pub fn to_json(&self) -> String {
        let saved = SavedOutbox {
            state: self.state.clone(),
            identity: self.identity.as_str().map(str::to_owned),
            destination: self.destination.clone(),
            pending: self.pending.clone(),
            in_doubt: self.in_doubt,
        };
        // A struct of texts and numbers can be written.
        KIND.write(&serde_json::to_string(&saved).unwrap_or_default())
    }

    /// The state of the follow after the last revision that was put in, for
    /// [`FollowOptions::state`](tallyfold::FollowOptions::state).
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Takes the state of a follow that has given no revision yet: one that is started again before its first revision
    /// begins at the same window. A state that is there already stays.
    pub fn begin(&mut self, state: String) {
        self.state.get_or_insert(state);
    }

    /// Takes where the revisions are sent to, as a text without secrets. If it changes, the counts of one follow would lie
    /// in two places; `has_moved` says that this is meant. Returns whether the document is to be stored.
    ///
    /// # Errors
    /// `invalid_checkpoint` for another destination than before, unless `has_moved`. The message names both.
    pub fn send_to(&mut self, destination: &str, has_moved: bool) -> Result<bool> {
        match &self.destination {
            Some(before) if before == destination => return Ok(false),
            Some(before) if !has_moved => {
                return Err(KIND.wrong(format_args!("it is for {before}, not for {destination}")));
            }
            _ => {}
        }
        self.destination = Some(destination.to_owned());
        Ok(true)
    }

    /// Puts in a revision, which is to be sent in that format, and the state of its follow after it.
    ///
    /// # Errors
    /// `out_of_order` if another revision is still pending, `incompatible_tables` for counts of another cluster or client,
    /// `invalid_argument` for an empty state, `invalid_checkpoint` for one that was torn or changed.
    pub fn put(&mut self, revision: &Revision, state: String, format: Format) -> Result<()> {
        self.put_source(&revision.into(), state, format)
    }

    /// The same, with the changes of a revision.
    ///
    /// # Errors
    /// The same, and `invalid_argument` for anything that isn't a revision.
    pub fn put_source(&mut self, changes: &Source, state: String, format: Format) -> Result<()> {
        check_carries_changes(format)?;
        Follow::is_state(&state)?;
        if self.pending.is_some() {
            let message = "another revision is pending: push it first";
            return Err(Error::new(Code::OutOfOrder, message));
        }
        let rows = &changes.rows;
        let (Some(revision), [window]) = (changes.revision, rows.windows.as_slice()) else {
            return Err(Error::argument(
                "revision",
                Code::InvalidArgument,
                "want a revision",
            ));
        };
        let values = |key| {
            rows.dictionaries
                .iter()
                .zip(key)
                .map(|(values, id)| values.value(id).to_owned())
        };
        let pending = Pending {
            export: format,
            finished: 0,
            metric: rows.metric,
            dimensions: owned_names(rows.dimensions),
            start: window.window.start(),
            end: window.window.end(),
            revision,
            changes: window
                .clone()
                .map(|(key, changes)| {
                    (
                        values(key).collect(),
                        changes.each().map(|change| change.to_string()),
                    )
                })
                .collect(),
        };
        self.identity = self.identity.with(&rows.identity, "revision")?;
        self.pending = Some(pending);
        self.state = Some(state);
        Ok(())
    }

    /// How many samples of what is pending are finished; `None` if nothing is pending.
    ///
    /// # Errors
    /// Those of [`Outbox::pending`].
    pub fn finished(&self, format: Format) -> Result<Option<u64>> {
        check_carries_changes(format)?;
        let Some(pending) = &self.pending else {
            return Ok(None);
        };
        if pending.export != format {
            let message = format!(
                "a revision is pending that is to be sent as {}; push it first",
                pending.export
            );
            return Err(Error::argument("format", Code::InvalidArgument, message));
        }
        Ok(Some(pending.finished))
    }

    /// What is to be sent, and how many of its samples are finished; `None` if nothing is pending.
    ///
    /// # Errors
    /// `invalid_argument` for a format that is not sent or can't carry changes, and for another format than it was to be
    /// sent in: the number of finished samples means nothing there.
    pub fn pending(&self, format: Format) -> Result<Option<(Source, u64)>> {
        let finished = self.finished(format)?;
        Ok(self.source()?.zip(finished))
    }

    /// Takes how many samples of what is pending are finished, and how many samples are in doubt
    /// ([`PushStep::Finished`](tallyfold::sending::PushStep::Finished)).
    pub fn finish(&mut self, samples: u64, in_doubt: u64) {
        if let Some(pending) = &mut self.pending {
            pending.finished = samples;
            self.in_doubt = in_doubt;
        }
    }

    /// How many samples were being sent when a push ended early, and were in no report yet. They are not sent again. Pass
    /// the number to the push ([`PushOptions::in_doubt`](tallyfold::sending::PushOptions::in_doubt)), which reports them.
    /// It stays when nothing is pending any more.
    #[must_use]
    pub fn in_doubt(&self) -> u64 {
        self.in_doubt
    }

    /// Takes how many samples in doubt the report of a push has shown
    /// ([`PushReport::unsure`](tallyfold::sending::PushReport::unsure)). The next push doesn't report them again.
    pub fn acknowledge(&mut self, samples: u64) {
        self.in_doubt = self.in_doubt.saturating_sub(samples);
    }

    /// What is pending, to say what is lost if it is given up; `None` if nothing is.
    #[must_use]
    pub fn pending_changes(&self) -> Option<PendingChanges> {
        let pending = self.pending.as_ref()?;
        let mut changes = [0; 3];
        for (_, of_group) in &pending.changes {
            for (sum, change) in changes.iter_mut().zip(of_group) {
                // `from_json` has read each of them.
                *sum += change.parse::<i128>().unwrap_or_default();
            }
        }
        Some(PendingChanges {
            format: pending.export.to_string(),
            window: Window::new(pending.start, pending.end).ok()?,
            revision: pending.revision,
            finished: pending.finished,
            samples: pending.changes.len() as u64,
            changes,
        })
    }

    /// Nothing is pending any more: it was sent, or is given up. Samples in doubt are still to be reported.
    pub fn clear(&mut self) {
        self.pending = None;
    }

    fn source(&self) -> Result<Option<Source>> {
        self.pending.as_ref().map(Pending::source).transpose()
    }
}

impl Pending {
    fn source(&self) -> Result<Source> {
        let window = Window::new(self.start, self.end)?;
        let groups = self.changes.iter().map(|(values, _)| values.as_slice());
        let mut columns =
            columns_of(self.dimensions.clone(), window, groups).ok_or_else(unusable)?;
        columns.metric = self.metric;
        let mut before = [(); 3].map(|()| Vec::new());
        for (_, changes) in &self.changes {
            for ((change, before), after) in
                changes.iter().zip(&mut before).zip(&mut columns.counts)
            {
                let size = change
                    .trim_start_matches('-')
                    .parse::<u64>()
                    .map_err(|_| unusable())?;
                // A negative change goes from its size to 0.
                let is_negative = change.starts_with('-');
                before.push(if is_negative { size } else { 0 });
                after.push(if is_negative { 0 } else { size });
            }
        }
        columns.before = Some(before);
        Ok(Source::of_rows(
            Windowed::of_columns(columns)?,
            Some(self.revision),
        ))
    }
}

/// Refuses a format that is not sent, or that has no times and so can't carry changes.
fn check_carries_changes(format: Format) -> Result<()> {
    if format.form().delivery.is_some() && format != Format::StatsD {
        return Ok(());
    }
    let message = format!(
        "{format} can't represent the changes of revisions; want a format with timestamps, such as dogstatsd or influx"
    );
    Err(Error::argument("format", Code::InvalidArgument, message))
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

fn unusable() -> Error {
    KIND.wrong("the changes that are pending can't be used")
}
