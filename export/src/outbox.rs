//! The document that a caller stores while it pushes the revisions of a follow, so that none is lost or counted twice.

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;
use tallyfold::{Code, Error, Identity, Metric, Result, Revision, Timestamp, Window, Windowed};

use crate::formats::Format;
use crate::position::Position;
use crate::source::{Source, columns_of, owned_names};

const KIND: DocumentKind = DocumentKind { format: "tallyfold-outbox/1", what: "outbox" };

/// The document that a caller stores while it pushes the revisions of a follow.
///
/// It contains the state of the follow and the revision that must be sent, so that both are stored atomically:
///
/// 1. [`Outbox::put`] stores a revision and the state of the follow after it. Store [`Outbox::to_json`].
/// 2. Push [`Outbox::pending`], with [`Outbox::in_doubt`]. Whenever the push reports how many samples are finished, pass
///    the number to [`Outbox::finish`] and store the document again. When everything was sent, call [`Outbox::clear`] and
///    store the document once more.
/// 3. However the push ends, its report contains the number of samples in doubt as `unsure`. Once you have shown the
///    report, pass this number to [`Outbox::acknowledge`] and store the document. Until then, each push reports them
///    again.
/// 4. After a restart, first push what is pending, and then resume the follow from [`Outbox::state`].
///
/// Only one process at a time may use a document. A process may replace only the document that it has loaded; if it
/// can't, it must send nothing. A document does not show whether it is outdated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    state: Option<String>,
    /// The cluster and the client that the counts belong to.
    identity: Identity,
    /// The destination of the revisions.
    destination: Option<String>,
    pending: Option<Pending>,
    /// How many samples are in doubt and were not in the report of any push yet.
    in_doubt: u64,
}

/// A revision that must be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingChanges {
    /// The name of the format in which the revision is sent.
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
    /// The format in which the changes are sent.
    export: Format,
    /// How many samples are finished.
    finished: u64,
    metric: Option<Metric>,
    dimensions: Vec<String>,
    start: Timestamp,
    end: Timestamp,
    revision: u32,
    /// The values of each group, and its changes as decimal strings.
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
    /// `invalid_checkpoint` for a document that is truncated or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let SavedOutbox { state, identity, destination, pending, in_doubt } =
            serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        let identity = identity.as_deref().map_or_else(Identity::default, Identity::new);
        let outbox = Self { state, identity, destination, pending, in_doubt };
        outbox.source()?;
        Ok(outbox)
    }

    /// The document to store, as JSON. It contains no secret.
    #[must_use]
    pub fn to_json(&self) -> String {
        let saved = SavedOutbox {
            state: self.state.clone(),
            identity: self.identity.as_str().map(str::to_owned),
            destination: self.destination.clone(),
            pending: self.pending.clone(),
            in_doubt: self.in_doubt,
        };
        // Serializing a struct of strings and numbers does not fail.
        KIND.write(&serde_json::to_string(&saved).unwrap_or_default())
    }

    /// The state of the follow after the last revision that was put in, for
    /// [`FollowOptions::state`](tallyfold::FollowOptions::state).
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Stores the state of a follow that has returned no revision yet. If the follow is restarted before its first
    /// revision, it then begins at the same window. If the outbox already has a state, this does nothing.
    pub fn begin(&mut self, state: String) {
        self.state.get_or_insert(state);
    }

    /// Sets the destination of the revisions, as a text without secrets. By default, another destination than before is
    /// refused, because the counts of one follow would be split between two destinations; `has_moved` allows it. Returns
    /// whether the document must be stored.
    ///
    /// # Errors
    /// `invalid_checkpoint` for another destination than before, unless `has_moved` is set. The message names both.
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

    /// Puts in a revision, which must be sent in this format, and the state of its follow just after the revision. Put in every
    /// revision, even if it changes no count.
    ///
    /// # Errors
    /// `out_of_order` if another revision is still pending, if the revision was put in before, or if another revision was
    /// skipped; `incompatible_tables` for counts of another cluster or client; `invalid_argument` for an empty state, and for
    /// a format that is not sent or can't represent changes; `invalid_checkpoint` for a state that is truncated or was changed.
    pub fn put(&mut self, revision: &Revision, state: String, format: Format) -> Result<()> {
        self.put_source(&revision.into(), state, format)
    }

    /// Like [`Outbox::put`], with the changes of a revision.
    ///
    /// # Errors
    /// The errors of [`Outbox::put`], and `invalid_argument` for anything that isn't a revision.
    pub fn put_source(&mut self, changes: &Source, state: String, format: Format) -> Result<()> {
        check_carries_changes(format)?;
        let after = Position::of(&state)?;
        if self.pending.is_some() {
            let message = "another revision is pending: push it first";
            return Err(Error::new(Code::OutOfOrder, message));
        }
        let rows = &changes.rows;
        let (Some(revision), [window]) = (changes.revision, rows.windows.as_slice()) else {
            return Err(Error::argument("revision", Code::InvalidArgument, "want a revision"));
        };
        let before = match self.state.as_deref() {
            None => after.as_ref().map(|after| Position::before_first(window.window, after)),
            // `begin` accepts any text as the state. If the text isn't a follow's state, skipped revisions can't be found.
            Some(state) => Position::of(state).ok().flatten(),
        };
        if let Some((before, after)) = before.zip(after) {
            before.check_one(&after, window, revision)?;
        }
        let values =
            |key| rows.dictionaries.iter().zip(key).map(|(values, id)| values.value(id).to_owned());
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
                .filter(|(_, changes)| changes.each() != [0; 3])
                .map(|(key, changes)| {
                    (values(key).collect(), changes.each().map(|change| change.to_string()))
                })
                .collect(),
        };
        self.identity = self.identity.with(&rows.identity, "revision")?;
        self.pending = Some(pending);
        self.state = Some(state);
        Ok(())
    }

    /// How many samples of the pending revision are finished; `None` if nothing is pending.
    ///
    /// # Errors
    /// The errors of [`Outbox::pending`].
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

    /// The changes that must be sent, and how many of their samples are finished; `None` if nothing is pending.
    ///
    /// # Errors
    /// `invalid_argument` for a format that is not sent or can't represent changes, and for another format than the one
    /// of [`Outbox::put`]: the number of finished samples is valid only in the same format.
    pub fn pending(&self, format: Format) -> Result<Option<(Source, u64)>> {
        let finished = self.finished(format)?;
        Ok(self.source()?.zip(finished))
    }

    /// Stores how many samples of the pending revision are finished, and how many samples are in doubt
    /// ([`PushStep::Finished`](tallyfold::sending::PushStep::Finished)).
    pub fn finish(&mut self, samples: u64, in_doubt: u64) {
        if let Some(pending) = &mut self.pending {
            pending.finished = samples;
            self.in_doubt = in_doubt;
        }
    }

    /// How many samples were being sent when a push ended early, and were not in the report of any push yet. They are not
    /// sent again. Pass the number to the push ([`PushOptions::in_doubt`](tallyfold::sending::PushOptions::in_doubt)),
    /// which reports them. The number remains when nothing is pending any more.
    #[must_use]
    pub fn in_doubt(&self) -> u64 {
        self.in_doubt
    }

    /// Subtracts the samples in doubt that the report of a push has shown
    /// ([`PushReport::unsure`](tallyfold::sending::PushReport::unsure)). The next push doesn't report them again.
    pub fn acknowledge(&mut self, samples: u64) {
        self.in_doubt = self.in_doubt.saturating_sub(samples);
    }

    /// The pending revision, to show what is lost if it is given up; `None` if nothing is pending.
    #[must_use]
    pub fn pending_changes(&self) -> Option<PendingChanges> {
        let pending = self.pending.as_ref()?;
        let mut changes = [0; 3];
        for (_, of_group) in &pending.changes {
            for (sum, change) in changes.iter_mut().zip(of_group) {
                // This is always a number: `put_source` wrote it, or `from_json` has checked it.
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

    /// Removes the pending revision, because it was sent or is given up. Samples in doubt must still be reported.
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
                let size = change.trim_start_matches('-').parse::<u64>().map_err(|_| unusable())?;
                // A negative change is a decrease from its size to 0.
                let is_negative = change.starts_with('-');
                before.push(if is_negative { size } else { 0 });
                after.push(if is_negative { 0 } else { size });
            }
        }
        columns.before = Some(before);
        Ok(Source::of_rows(Windowed::of_columns(columns)?, Some(self.revision)))
    }
}

/// Refuses a format that is not sent, or that has no timestamps and so can't represent changes.
fn check_carries_changes(format: Format) -> Result<()> {
    if format.form().delivery.is_some() && format != Format::StatsD {
        return Ok(());
    }
    let message = format!(
        "{format} can't represent the changes of revisions; want a format with timestamps, such as dogstatsd or influx"
    );
    Err(Error::argument("format", Code::InvalidArgument, message))
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

fn unusable() -> Error {
    KIND.wrong("the changes that are pending can't be used")
}
