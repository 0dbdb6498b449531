//! Running totals of settled windows, as counters for a scrape. They never decrease.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::keeper::{DocumentKind, check_past};
use tallyfold::{
    Code, CountName, Dimension, Dimensions, Error, Identity, Metric, Name, Result, Revision,
    Timestamp, Window, Windowed, Words,
};

use crate::context::{Context, Labels, UNIT};
use crate::form::Numbers;
use crate::formats::openmetrics::Seconds;
use crate::note::Note;
use crate::position::Position;
use crate::scrape::{FamilyKind, Scrape, ScrapeFormat};
use crate::source::{Source, columns_of, owned_names};

const KIND: DocumentKind = DocumentKind { format: "tallyfold-ledger/1", what: "ledger" };

/// Running totals of settled windows, by group.
///
/// A follow returns the last revision of each window exactly once, marked as settled. Only that revision is added, so a
/// total never decreases. The document, [`Ledger::to_json`], contains both the totals and the state of the follow. Store
/// it atomically after each revision. Then the process can end at any moment: after a restart with the document, and with
/// a follow that resumes from its state, no revision is lost or added twice.
///
/// Only one process at a time may use a document, and a process may replace only the document that it has loaded. A
/// document does not show whether it is outdated, and an outdated document would let totals decrease.
///
/// A scrape gets the totals as text from [`Ledger::openmetrics`]. OTLP gets them as cumulative sums from
/// [`Ledger::stamp`] and [`Ledger::totals`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// What is counted; `None` before the first revision.
    subject: Option<Subject>,
    /// The cluster and the client that the counts belong to.
    identity: Identity,
    /// The three sums of each group.
    totals: BTreeMap<Vec<String>, [u64; 3]>,
    /// The windows that were added, sorted. Adjacent windows are joined.
    windows: Vec<Window>,
    /// The end of the newest window that was added.
    settled_until: Option<Timestamp>,
    /// The state of the follow after the last revision that was added.
    state: Option<String>,
    /// When the totals were 0, by the caller's clock.
    began: Option<Timestamp>,
    /// The timestamp of the last stamp.
    stamped: Option<Timestamp>,
    /// By how many milliseconds the caller's clock was ahead of the service's clock when the last revision was read.
    clock_ahead_ms: u64,
}

/// How a revision is added: [`Ledger::add_rows`] and [`Ledger::add_at`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Whether the window is settled. Otherwise, only the state is stored.
    pub settled: bool,
    /// The state of the follow after the revision.
    pub state: String,
    /// Whether windows before this one may have been skipped.
    pub allow_gap: bool,
    /// By how many milliseconds the caller's clock was ahead: [`Revision::clock_ahead_ms`].
    pub clock_ahead_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    metric: Option<Metric>,
    dimensions: Dimensions,
}

/// A ledger as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedLedger {
    state: Option<String>,
    metric: Option<Metric>,
    dimensions: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    settled_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamped: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_none")]
    clock_ahead_ms: u64,
    /// The start and the end of each window.
    windows: Vec<(Timestamp, Timestamp)>,
    /// The values of each group, and its sums as decimal strings.
    totals: Vec<(Vec<String>, [String; 3])>,
}

/// A counter: a name, what it counts, and its value for each set of labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Counter {
    /// The name, without the `_total` that the text format adds.
    pub name: String,
    /// What it counts.
    pub help: String,
    /// The names of the labels.
    pub labels: Vec<String>,
    /// The values of each group's labels, and its count.
    pub samples: Vec<(Vec<String>, u64)>,
}

impl Ledger {
    /// Reads a document that [`Ledger::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` for a document that is truncated or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let saved: SavedLedger =
            serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        let subject = match saved.dimensions {
            None => None,
            Some(names) => {
                Some(Subject { metric: saved.metric, dimensions: Dimensions::kept(&names)? })
            }
        };
        let width = subject.map_or(0, |subject| subject.dimensions.len());
        let mut totals = BTreeMap::new();
        for (values, sums) in saved.totals {
            let sums = sums.map(|sum| sum.parse().ok());
            match sums {
                [Some(success), Some(errors), Some(filtered)] if values.len() == width => {
                    totals.insert(values, [success, errors, filtered]);
                }
                _ => {
                    let why = format_args!("the sums of {values:?} can't be used");
                    return Err(KIND.wrong(why));
                }
            }
        }
        Ok(Self {
            subject,
            identity: saved.identity.as_deref().map_or_else(Identity::default, Identity::new),
            totals,
            windows: saved
                .windows
                .iter()
                .map(|(start, end)| Window::new(*start, *end))
                .collect::<Result<_>>()
                .map_err(|error| KIND.wrong(error.message()))?,
            settled_until: saved.settled_until,
            began: saved.began,
            stamped: saved.stamped,
            clock_ahead_ms: saved.clock_ahead_ms,
            state: saved.state,
        })
    }

    /// The document to store: JSON with the totals and the state of the follow. It contains no secret.
    #[must_use]
    pub fn to_json(&self) -> String {
        let totals = self.totals.iter();
        let saved = SavedLedger {
            state: self.state.clone(),
            metric: self.subject.and_then(|subject| subject.metric),
            dimensions: self.subject.map(|subject| owned_names(subject.dimensions)),
            identity: self.identity.as_str().map(str::to_owned),
            settled_until: self.settled_until,
            began: self.began,
            stamped: self.stamped,
            clock_ahead_ms: self.clock_ahead_ms,
            windows: self.windows.iter().map(|window| (window.start(), window.end())).collect(),
            totals: totals
                .map(|(values, sums)| (values.clone(), sums.map(|sum| sum.to_string())))
                .collect(),
        };
        // Serializing a struct of strings does not fail.
        KIND.write(&serde_json::to_string(&saved).unwrap_or_default())
    }

    /// The state of the follow after the last revision that was added, for
    /// [`FollowOptions::state`](tallyfold::FollowOptions::state).
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The end of the newest window that was added.
    #[must_use]
    pub fn settled_until(&self) -> Option<Timestamp> {
        self.settled_until
    }

    /// The time of the last [`Ledger::stamp`]; `None` before the first.
    #[must_use]
    pub fn stamped(&self) -> Option<Timestamp> {
        self.stamped
    }

    /// Stores the state of a follow that has returned no revision yet. If the follow is restarted before its first
    /// revision, it then begins at the same window. If the ledger already has a state, this does nothing.
    pub fn begin(&mut self, state: String) {
        self.state.get_or_insert(state);
    }

    /// Adds a revision, and stores the state of its follow after the revision. The counts are added only if the window is
    /// settled.
    ///
    /// The first revision, or [`Ledger::begin`], determines where the totals begin. From there, no window may be skipped: each
    /// window that was still to be settled before must be in the totals, or still unsettled in the new state.
    /// A follow may settle windows in any order, so a window that can't be read for days does not delay the others.
    ///
    /// # Errors
    /// `incompatible_tables` for counts by other dimensions, or of another metric, cluster or client;
    /// `overlapping_coverage` for a settled window that was added before; `out_of_order` if a window was skipped, or if
    /// the ledger already has this state; `invalid_argument` for an empty state; `invalid_checkpoint` for a state that is
    /// truncated or was changed; `sum_overflow`. After an error, the ledger is unchanged.
    pub fn add(&mut self, revision: &Revision, state: String) -> Result<()> {
        let addition = Addition::of(revision, state);
        self.add_rows(&revision.table.windowed(), addition)
    }

    /// Like [`Ledger::add`], but windows before this one may have been skipped. The totals don't contain their counts.
    /// This is for the first revision after a range whose counts can't be read any more.
    ///
    /// # Errors
    /// The errors of [`Ledger::add`], except the one for a skipped window.
    pub fn add_allowing_gap(&mut self, revision: &Revision, state: String) -> Result<()> {
        let addition = Addition { allow_gap: true, ..Addition::of(revision, state) };
        self.add_rows(&revision.table.windowed(), addition)
    }

    /// Like [`Ledger::add`], with the rows of the revision's table.
    ///
    /// # Errors
    /// The errors of [`Ledger::add`].
    pub fn add_rows(&mut self, rows: &Windowed, addition: Addition) -> Result<()> {
        let Addition { settled, state, allow_gap, clock_ahead_ms } = addition;
        let subject = Subject { metric: rows.metric, dimensions: rows.dimensions };
        if self.subject.is_some_and(|own| own != subject) {
            let message = "the ledger has totals of another metric, or by other dimensions";
            return Err(Error::argument("revision", Code::IncompatibleTables, message));
        }
        let identity = self.identity.with(&rows.identity, "revision")?;
        if self.state.as_ref() == Some(&state) {
            let message = "a revision with this state of its follow was added before";
            return Err(Error::argument("state", Code::OutOfOrder, message));
        }
        let mut sums = BTreeMap::new();
        let added = rows.windows.iter().filter(|_| settled);
        let mut windows = self.windows.clone();
        for rows in added.clone() {
            windows = with_window(windows, rows.window)?;
        }
        let newest = added.clone().map(|rows| rows.window.end()).max();
        let settled_until = self.settled_until.max(newest);
        // Without the state of a follow, the caller adds windows in order.
        let in_order = |until: Option<Timestamp>| until.map(Position::at);
        let after = Position::of(&state)?.or_else(|| in_order(settled_until));
        let before = match self.state.as_deref().map(Position::of) {
            None => {
                let first = rows.windows.first().map(|rows| rows.window);
                first.zip(after.as_ref()).map(|(first, after)| Position::before_first(first, after))
            }
            Some(Ok(position)) => position.or_else(|| in_order(self.settled_until)),
            // `begin` accepts any text as the state. If the text can't be parsed, skipped windows can't be found.
            Some(Err(_)) => None,
        };
        let skipped = before.zip(after).and_then(|(before, after)| before.gap(&after, &windows));
        if let Some(skipped) = skipped.filter(|_| !allow_gap) {
            let message = Words::from(format!(
                "{skipped:?} was skipped: the totals don't have its counts, and from this state, the follow won't read it any \
                 more; add each revision with the state just after it, resume the follow from the state in the ledger, or set "
            ));
            let message =
                message.and(Name::from("allow_gap")).and(" if these counts are gone for good");
            return Err(Error::argument("revision", Code::OutOfOrder, message));
        }
        for (key, counts) in added.clone().flat_map(Clone::clone) {
            let values = rows.dictionaries.iter().zip(key);
            let values: Vec<String> =
                values.map(|(values, id)| values.value(id).to_owned()).collect();
            let before = sums.get(&values).or_else(|| self.totals.get(&values));
            let before = before.copied().unwrap_or_default();
            let mut after = [0; 3];
            for ((sum, before), count) in after.iter_mut().zip(before).zip(counts.each()) {
                *sum = u64::try_from(i128::from(before) + count).map_err(|_| overflow(&values))?;
            }
            sums.insert(values, after);
        }
        // All checks have passed: only now does the ledger change.
        self.totals.extend(sums);
        self.settled_until = settled_until;
        self.windows = windows;
        self.subject = Some(subject);
        self.identity = identity;
        self.state = Some(state);
        self.clock_ahead_ms = clock_ahead_ms;
        Ok(())
    }

    /// Like [`Ledger::add_rows`], for a caller that learns the service's time only from revisions. `unix_ms` is the time
    /// of the caller's own clock. If that clock is ahead when the first revision is added, the totals begin at the time
    /// of this call, and earlier stamps are discarded. Stamp such totals with [`Ledger::stamp_at`].
    ///
    /// # Errors
    /// The errors of [`Ledger::add`], and `invalid_timestamp` if the clock is outside of the years 0 to 9999. After an
    /// error, the ledger is as it was before.
    pub fn add_at(&mut self, rows: &Windowed, addition: Addition, unix_ms: i64) -> Result<()> {
        if self.subject.is_some() {
            return self.add_rows(rows, addition);
        }
        let mut first = self.clone();
        first.add_rows(rows, addition)?;
        if first.clock_ahead_ms > 0 {
            // Nothing was sent before, so stamps from before the service's time was known can be discarded.
            (first.began, first.stamped) = (None, None);
            first.stamp_at(unix_ms)?;
        }
        *self = first;
        Ok(())
    }

    /// Stamps the totals like [`Ledger::stamp`], with the time of a clock that may be ahead of the service's clock:
    /// subtracts the difference that was measured when the last revision was read. If the clock has been corrected since
    /// then, the timestamps continue after the last stamp.
    ///
    /// # Errors
    /// The errors of [`Ledger::stamp`].
    pub fn stamp_at(&mut self, unix_ms: i64) -> Result<()> {
        let before_ms = self.stamped.map_or(i64::MIN, Timestamp::unix_ms);
        let service_ms = unix_ms.saturating_sub_unsigned(self.clock_ahead_ms);
        self.stamp(service_ms.max(before_ms.min(unix_ms)))
    }

    /// Sets the timestamp of [`Ledger::totals`] to the time of the caller's clock, but always later than the last stamp,
    /// even if the clock was set back. The first stamp also sets the time at which the totals begin. So stamp a ledger
    /// before the first revision is added and before each message, and store the document before the message is sent.
    ///
    /// If a clock was ahead by more than five minutes and is then corrected, the ledger can't be stamped until the clock
    /// is within five minutes of the last stamp. If the caller knows the service's time, it should pass the earlier of
    /// the two times.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the last stamp is more than five minutes ahead of the clock; `invalid_timestamp` if the
    /// clock is outside of the years 0 to 9999.
    pub fn stamp(&mut self, unix_ms: i64) -> Result<()> {
        let at = |ms| {
            let message = "the clock is outside of the years 0 to 9999";
            Timestamp::from_unix_ms(ms).ok_or_else(|| Error::new(Code::InvalidTimestamp, message))
        };
        let now = at(unix_ms)?;
        let began = self.began.unwrap_or(now);
        let before = self.stamped.unwrap_or(began);
        check_past(before, unix_ms)?;
        self.stamped = Some(now.max(at(before.unix_ms() + 1)?));
        self.began = Some(began);
        Ok(())
    }

    /// The totals at the last [`Ledger::stamp`], for an [`Export`](crate::Export) in a format that has running totals,
    /// which is OTLP. The same totals may be sent any number of times.
    ///
    /// ```
    /// use tallyfold_export::{Export, ExportOptions, Format, Ledger};
    ///
    /// let mut ledger = Ledger::default();
    /// ledger.stamp(1_770_000_000_000)?;
    /// // Here the host stores `ledger.to_json()`.
    /// let options = ExportOptions::with_defaults(Format::Otlp);
    /// let mut export = Export::new(ledger.totals()?, &options)?;
    /// assert_eq!(export.next_piece(&mut Vec::new()), None, "there was no revision yet");
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// `out_of_order` for a ledger without a stamp.
    pub fn totals(&self) -> Result<Source> {
        let (Some(began), Some(stamped)) = (self.began, self.stamped) else {
            let message = "stamp the ledger first: its totals have no time";
            return Err(Error::new(Code::OutOfOrder, message));
        };
        let names = owned_names(self.dimensions()?);
        let groups = self.totals.keys().map(Vec::as_slice);
        let unusable = || KIND.wrong("the totals can't be used");
        let mut columns =
            columns_of(names, Window::new(began, stamped)?, groups).ok_or_else(unusable)?;
        columns.metric = self.subject.and_then(|subject| subject.metric);
        columns.identity = self.identity.clone();
        for (place, counts) in columns.counts.iter_mut().enumerate() {
            counts.extend(self.totals.values().map(|sums| sums[place]));
        }
        Ok(Source { is_total: true, ..Source::of_rows(Windowed::of_columns(columns)?, None) })
    }

    /// Returns a note if a total is above 2^53: the text has all digits, but Prometheus stores 64-bit floats and rounds them.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        let is_inexact = |sum: &u64| *sum > Numbers::Floats.most();
        let mut totals = self.totals.iter();
        let (values, sums) = totals.find(|(_, sums)| sums.iter().any(is_inexact))?;
        let largest = sums.iter().max()?;
        Some(Note::InexactTotal { values: values.clone(), total: *largest })
    }

    /// The totals as counters with these labels. `name` replaces the usual prefix of their names, as in
    /// [`ExportOptions`](crate::ExportOptions).
    ///
    /// # Errors
    /// `invalid_argument` for an invalid label or name.
    pub fn counters(&self, labels: &Labels, name: Option<&str>) -> Result<Vec<Counter>> {
        let context = self.context(labels, name)?;
        Ok(self.counters_of(&context))
    }

    fn counters_of(&self, context: &Context) -> Vec<Counter> {
        if self.subject.is_none() {
            return Vec::new();
        };
        let counter = |(position, count): (usize, &CountName)| {
            let samples = self.totals.iter().map(|(values, sums)| {
                let labels = context.labels_of(|position| &values[position]);
                (labels.map(|(_, value)| value.to_owned()).collect(), sums[position])
            });
            Counter {
                name: context.names.counter(*count),
                help: context.description(*count),
                labels: context.label_names().map(str::to_owned).collect(),
                samples: samples.collect(),
            }
        };
        CountName::ALL.iter().enumerate().map(counter).collect()
    }

    /// Adds the totals and the end of the newest added window to a scrape. A label with an empty value is left out,
    /// because for Prometheus it is the same as no label.
    ///
    /// # Errors
    /// `invalid_argument` for an invalid label or name.
    pub fn add_to(&self, scrape: &mut Scrape, labels: &Labels, name: Option<&str>) -> Result<()> {
        let context = self.context(labels, name)?;
        for counter in self.counters_of(&context) {
            let family = scrape.family(&counter.name, FamilyKind::Counter, UNIT, &counter.help);
            for (values, total) in &counter.samples {
                let labels = counter.labels.iter().zip(values);
                let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
                family.sample(labels.filter(|(_, value)| !value.is_empty()), total);
            }
        }
        if let Some(end) = self.settled_until.filter(|_| self.subject.is_some()) {
            let family = scrape.family(
                &context.names.settled_until(),
                FamilyKind::Gauge,
                "seconds",
                "End of the newest window in the totals, in seconds since 1970",
            );
            let labels = labels.iter().filter(|(_, value)| !value.is_empty());
            family.sample(labels, Seconds(end.unix_ms()));
        }
        Ok(())
    }

    /// The totals and the end of the newest added window, as OpenMetrics text 1.0 for a scrape.
    ///
    /// # Errors
    /// `invalid_argument` for an invalid label or name.
    pub fn openmetrics(&self, labels: &Labels, name: Option<&str>) -> Result<String> {
        let mut scrape = Scrape::default();
        self.add_to(&mut scrape, labels, name)?;
        Ok(scrape.text(ScrapeFormat::OpenMetrics))
    }

    fn context(&self, labels: &Labels, name: Option<&str>) -> Result<Context> {
        let rows = Windowed {
            metric: self.subject.and_then(|subject| subject.metric),
            dimensions: self.dimensions()?,
            dictionaries: Vec::new(),
            identity: self.identity.clone(),
            windows: Vec::new(),
        };
        let source = Source { is_total: true, ..Source::of_rows(rows, None) };
        // Keeps labels with empty values, because each sample of a counter has a value for each label name.
        Context::new(&source, labels.clone(), name, None, false)
    }

    fn dimensions(&self) -> Result<Dimensions> {
        match self.subject {
            Some(subject) => Ok(subject.dimensions),
            // The first revision may have any dimensions, so no label may have the name of one.
            None => Dimensions::kept(Dimension::ALL),
        }
    }
}

impl Addition {
    fn of(revision: &Revision, state: String) -> Self {
        Self {
            settled: revision.settled,
            state,
            allow_gap: false,
            clock_ahead_ms: revision.clock_ahead_ms,
        }
    }
}

/// Adds a window to these windows, which it must not overlap. Adjacent windows are joined.
fn with_window(windows: Vec<Window>, added: Window) -> Result<Vec<Window>> {
    if windows.iter().any(|window| window.overlaps(added)) {
        let message =
            format!("{added:?} was added before; resume the follow from the state in the ledger");
        return Err(Error::argument("revision", Code::OverlappingCoverage, message));
    }
    let (mut start, mut end) = (added.start(), added.end());
    let mut all = Vec::with_capacity(windows.len() + 1);
    for window in windows {
        if window.end() == start {
            start = window.start();
        } else if window.start() == end {
            end = window.end();
        } else {
            all.push(window);
        }
    }
    all.push(Window::new(start, end)?);
    all.sort_unstable();
    Ok(all)
}

fn overflow(values: &[String]) -> Error {
    Error::new(Code::SumOverflow, format!("the sum of {values:?} is above 2^64 - 1"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(ms: &u64) -> bool {
    *ms == 0
}
