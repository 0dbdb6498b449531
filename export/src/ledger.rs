//! Running totals of settled windows: counters for a scrape, which never go down.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::keeper::{DocumentKind, check_past};
use tallyfold::{
    Code, CountName, Dimension, Dimensions, Error, Follow, Identity, Metric, Name, Result,
    Revision, Timestamp, Window, Windowed, Words,
};

use crate::context::{Context, Labels, UNIT};
use crate::form::Numbers;
use crate::formats::openmetrics::Seconds;
use crate::note::Note;
use crate::scrape::{FamilyKind, Scrape, ScrapeFormat};
use crate::source::{Source, columns_of, owned_names};

const KIND: DocumentKind = DocumentKind {
    format: "tallyfold-ledger/1",
    what: "ledger",
};

/// Running totals of settled windows, by group.
///
/// A follow gives each window's last revision once, as settled, and only that is added: so a total never goes down.
/// The document, [`Ledger::to_json`], holds the totals and the state of the follow together. Store it after each
/// revision, in one step: then a process that is ended at any moment, and started again with the document and its state,
/// goes on as if nothing had happened.
///
/// Only one process at a time may use a document: the process that stores a new document replaces only the one that it has
/// loaded. A document doesn't show whether it is an older one, and an older document would let totals decrease.
///
/// A scrape reads the totals as [`Ledger::openmetrics`], and OTLP gets them as cumulative sums: [`Ledger::stamp`],
/// [`Ledger::totals`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// What is counted; `None` before the first revision.
    subject: Option<Subject>,
    /// Whose counts they are.
    identity: Identity,
    /// Per group, the three sums.
    totals: BTreeMap<Vec<String>, [u64; 3]>,
    /// The windows that were added, joined where they meet; sorted.
    windows: Vec<Window>,
    /// The end of the newest window that was added.
    settled_until: Option<Timestamp>,
    /// The state of the follow.
    state: Option<String>,
    /// When the totals were 0, by the clock of the host.
    began: Option<Timestamp>,
    /// The time that the totals were stamped with last.
    stamped: Option<Timestamp>,
    /// By how much the clock of the host was ahead of the service's when the last revision was read.
    clock_ahead_ms: u64,
}

/// How a revision is added: [`Ledger::add_rows`] and [`Ledger::add_at`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Whether the window is settled. Otherwise only the state is taken.
    pub settled: bool,
    /// The state of the follow after the revision.
    pub state: String,
    /// Whether windows before it may have been skipped.
    pub allow_gap: bool,
    /// By how much the clock of the host was ahead: [`Revision::clock_ahead_ms`].
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
    /// The edges of windows.
    windows: Vec<(Timestamp, Timestamp)>,
    /// The values of each group, and its sums as texts.
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
    /// For each group the values of its labels, and the count.
    pub samples: Vec<(Vec<String>, u64)>,
}

impl Ledger {
    /// Reads a document that [`Ledger::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` for one that is torn or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let saved: SavedLedger =
            serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        let subject = match saved.dimensions {
            None => None,
            Some(names) => Some(Subject {
                metric: saved.metric,
                dimensions: Dimensions::kept(&names)?,
            }),
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
            identity: saved
                .identity
                .as_deref()
                .map_or_else(Identity::default, Identity::new),
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

    /// The document to store: JSON with the totals and the state of the follow. It holds no secret.
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
            windows: self
                .windows
                .iter()
                .map(|window| (window.start(), window.end()))
                .collect(),
            totals: totals
                .map(|(values, sums)| (values.clone(), sums.map(|sum| sum.to_string())))
                .collect(),
        };
        // A struct of texts can be written.
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

    /// Takes the state of a follow that has given no revision yet: one that is started again before its first revision
    /// begins at the same window. A state that is there already stays.
    pub fn begin(&mut self, state: String) {
        self.state.get_or_insert(state);
    }

    /// Takes a revision and the state of its follow after it. The counts are added if the window is settled.
    ///
    /// The first revision, or [`Ledger::begin`], decides where the totals begin. From there on, no window may be skipped:
    /// each window that the state in the ledger still had to come is in the totals, or still to come in the new state. So a
    /// window that can't be read for days delays no other one.
    ///
    /// # Errors
    /// `incompatible_tables` for counts by other dimensions, of another metric, cluster or client,
    /// `overlapping_coverage` for a settled window that was added before, `out_of_order` if one was skipped,
    /// `invalid_argument` for an empty state, `invalid_checkpoint` for one that was torn or changed, `sum_overflow`. The
    /// ledger is unchanged then.
    pub fn add(&mut self, revision: &Revision, state: String) -> Result<()> {
        let addition = Addition::of(revision, state);
        self.add_rows(&revision.table.windowed(), addition)
    }

    /// The same, also if windows before it were skipped: the totals don't have their counts. This is for the first revision
    /// after a time whose counts can't be read any more.
    ///
    /// # Errors
    /// The same, except for windows that were skipped.
    pub fn add_allowing_gap(&mut self, revision: &Revision, state: String) -> Result<()> {
        let addition = Addition {
            allow_gap: true,
            ..Addition::of(revision, state)
        };
        self.add_rows(&revision.table.windowed(), addition)
    }

    /// The same, with the rows of the revision's table.
    ///
    /// # Errors
    /// The same.
    pub fn add_rows(&mut self, rows: &Windowed, addition: Addition) -> Result<()> {
        let Addition {
            settled,
            state,
            allow_gap,
            clock_ahead_ms,
        } = addition;
        let subject = Subject {
            metric: rows.metric,
            dimensions: rows.dimensions,
        };
        if self.subject.is_some_and(|own| own != subject) {
            let message = "the ledger has totals of another metric, or by other dimensions";
            return Err(Error::argument(
                "revision",
                Code::IncompatibleTables,
                message,
            ));
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
        let after = Coming::of(&state, settled_until)?;
        // `begin` takes any text as the state. If it can't be read, nothing is known.
        let before = self.state.as_deref();
        let before = before.and_then(|state| Coming::of(state, self.settled_until).ok().flatten());
        let skipped = before
            .zip(after)
            .and_then(|(before, after)| before.gap(after, &windows));
        if let Some(skipped) = skipped.filter(|_| !allow_gap) {
            let message = Words::from(format!(
                "{skipped:?} was skipped: the totals don't have its counts, and the follow won't read it any more; go on with \
                 the follow from the state in the ledger, or set "
            ));
            let message = message
                .and(Name::from("allow_gap"))
                .and(" if these counts are gone for good");
            return Err(Error::argument("revision", Code::OutOfOrder, message));
        }
        for (key, counts) in added.clone().flat_map(Clone::clone) {
            let values = rows.dictionaries.iter().zip(key);
            let values: Vec<String> = values
                .map(|(values, id)| values.value(id).to_owned())
                .collect();
            let before = sums.get(&values).or_else(|| self.totals.get(&values));
            let before = before.copied().unwrap_or_default();
            let mut after = [0; 3];
            for ((sum, before), count) in after.iter_mut().zip(before).zip(counts.each()) {
                *sum = u64::try_from(i128::from(before) + count).map_err(|_| overflow(&values))?;
            }
            sums.insert(values, after);
        }
        // Nothing is changed before everything was found right.
        self.totals.extend(sums);
        self.settled_until = settled_until;
        self.windows = windows;
        self.subject = Some(subject);
        self.identity = identity;
        self.state = Some(state);
        self.clock_ahead_ms = clock_ahead_ms;
        Ok(())
    }

    /// The same for a host that knows the service's clock by revisions only, with the time of its own clock. If that is
    /// ahead, the totals begin with the first revision. Stamp the totals with [`Ledger::stamp_at`].
    ///
    /// # Errors
    /// The same, and `invalid_timestamp` for a clock outside of the years 0 to 9999.
    pub fn add_at(&mut self, rows: &Windowed, addition: Addition, unix_ms: i64) -> Result<()> {
        let is_first = self.subject.is_none();
        self.add_rows(rows, addition)?;
        if is_first && self.clock_ahead_ms > 0 {
            // Nothing was sent before, so a stamp that was made before the service's clock was known does not count.
            (self.began, self.stamped) = (None, None);
            self.stamp_at(unix_ms)?;
        }
        Ok(())
    }

    /// Stamps the totals like [`Ledger::stamp`] with the time of a clock that may be ahead by as much as when the last
    /// revision was read. Once the clock is set right, times go on from the last stamp.
    ///
    /// # Errors
    /// Those of [`Ledger::stamp`].
    pub fn stamp_at(&mut self, unix_ms: i64) -> Result<()> {
        let before_ms = self.stamped.map_or(i64::MIN, Timestamp::unix_ms);
        let service_ms = unix_ms.saturating_sub_unsigned(self.clock_ahead_ms);
        self.stamp(service_ms.max(before_ms.min(unix_ms)))
    }

    /// Stamps the totals with the time that [`Ledger::totals`] shows: the clock of the host, but always later than the time
    /// before, also if the clock was set back. The first stamp is when the totals begin, and stays. So stamp a ledger
    /// before the first revision is added, and before each message; store the document before the message is sent.
    ///
    /// A clock that is ahead would make the ledger useless once it is set right. If the host knows the service's time, give
    /// the earlier of the two.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the time before is more than five minutes ahead of the clock.
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

    /// The totals of the last [`Ledger::stamp`], for an [`Export`](crate::Export) in a format that has running totals:
    /// OTLP. The same totals may be sent any number of times.
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
        Ok(Source {
            is_total: true,
            ..Source::of_rows(Windowed::of_columns(columns)?, None)
        })
    }

    /// Says which total is above 2^53, if one is: Prometheus stores 64-bit floats, and would round it. The text has all digits.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        let is_inexact = |sum: &u64| *sum > Numbers::Floats.most();
        let mut totals = self.totals.iter();
        let (values, sums) = totals.find(|(_, sums)| sums.iter().any(is_inexact))?;
        let largest = sums.iter().max()?;
        Some(Note::InexactTotal {
            values: values.clone(),
            total: *largest,
        })
    }

    /// The totals as counters, with labels that each gets and a name that replaces the usual one, as in
    /// [`ExportOptions`](crate::ExportOptions).
    ///
    /// # Errors
    /// `invalid_argument` for the labels and the name.
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
                (
                    labels.map(|(_, value)| value.to_owned()).collect(),
                    sums[position],
                )
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

    /// Adds the totals to a scrape, with the end of the newest window that was added. An empty label is left out: for
    /// Prometheus it is the same as none.
    ///
    /// # Errors
    /// `invalid_argument` for the labels and the name.
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

    /// The totals as OpenMetrics text 1.0, for a scrape, with the end of the newest window that was added.
    ///
    /// # Errors
    /// `invalid_argument` for the labels and the name.
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
        let source = Source {
            is_total: true,
            ..Source::of_rows(rows, None)
        };
        // Each sample of a counter has a value for each name of a label.
        Context::new(&source, labels.clone(), name, None, false)
    }

    fn dimensions(&self) -> Result<Dimensions> {
        match self.subject {
            Some(subject) => Ok(subject.dimensions),
            // Any may come: no label may have the name of one.
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

/// These windows and another one, which must not overlap them; joined where they meet.
fn with_window(windows: Vec<Window>, added: Window) -> Result<Vec<Window>> {
    if windows.iter().any(|window| window.overlaps(added)) {
        let message = format!(
            "{added:?} was added before; go on with the follow from the state in the ledger"
        );
        return Err(Error::argument(
            "revision",
            Code::OverlappingCoverage,
            message,
        ));
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

/// The windows that a follow still has to settle.
struct Coming {
    /// Those that it has opened; sorted.
    open: Vec<Window>,
    /// Where the others start.
    next: Timestamp,
}

/// The parts of a follow's state that name windows.
#[derive(Deserialize)]
struct FollowWindows {
    next: String,
    /// The edges of open windows without a reading.
    unread: Vec<String>,
    /// The open windows with one.
    table: Option<ReadWindows>,
}

#[derive(Deserialize)]
struct ReadWindows {
    windows: Vec<ReadWindow>,
}

#[derive(Deserialize)]
struct ReadWindow {
    start: String,
    end: String,
}

impl Coming {
    /// Reads the state of a follow. A host with states of its own gives windows in order: what is to come follows the
    /// newest settled window. `None` if nothing is known.
    fn of(state: &str, settled_until: Option<Timestamp>) -> Result<Option<Self>> {
        if !Follow::is_state(state)? {
            let open = Vec::new();
            return Ok(settled_until.map(|next| Self { open, next }));
        }
        let invalid = |error| {
            let message = format!("want the state of the follow: {error}");
            Error::argument("state", Code::InvalidCheckpoint, message)
        };
        let found: FollowWindows = serde_json::from_str(state).map_err(invalid)?;
        let unread = found.unread.chunks_exact(2);
        let unread = unread.map(|edges| Window::parse(&edges[0], &edges[1]));
        let read = found.table.iter().flat_map(|table| &table.windows);
        let read = read.map(|window| Window::parse(&window.start, &window.end));
        let mut open = unread.chain(read).collect::<Result<Vec<_>>>()?;
        open.sort_unstable();
        let next = Timestamp::parse(&found.next)?;
        Ok(Some(Self { open, next }))
    }

    /// The first stretch of time that was to come, and that is neither in these windows nor to come any more.
    fn gap(self, after: Self, windows: &[Window]) -> Option<Window> {
        let mut known = [windows, &after.open].concat();
        known.sort_unstable();
        let mut missing = Vec::new();
        let unopened = Window::new(self.next, after.next).ok();
        for window in self.open.into_iter().chain(unopened) {
            let (mut from, end) = (window.start(), window.end().min(after.next));
            for known in &known {
                if known.end() > from {
                    missing.extend(Window::new(from, known.start().min(end)).ok());
                    from = known.end();
                }
            }
            missing.extend(Window::new(from, end).ok());
        }
        let mut missing = missing.into_iter();
        let first = missing.next()?;
        let end = missing.fold(first.end(), |end, window| match window.start() == end {
            true => window.end(),
            false => end,
        });
        Window::new(first.start(), end).ok()
    }
}

fn overflow(values: &[String]) -> Error {
    Error::new(
        Code::SumOverflow,
        format!("the sum of {values:?} is above 2^64 - 1"),
    )
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(ms: &u64) -> bool {
    *ms == 0
}
