//! One cluster of `tallyfold serve`: its totals, the metrics of the exporter itself, and its health.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use tallyfold::{Attempt, Code, Kind, Revision, Target};
use tallyfold_export::{Family, FamilyKind, Labels, Ledger, Scrape, Seconds};
use tokio::time::sleep;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::host::ranges::{FollowEvent, Following};
use crate::host::session::Clock;
use crate::host::shutdown::Shutdown;
use crate::host::state::StateFile;

/// The pause before the next attempt to store the state, or to read while the state is from the future.
const PAUSE: Duration = Duration::from_secs(2);

/// The exporter of one cluster.
pub(super) struct Exporter {
    /// The name of the cluster.
    pub(super) name: String,
    /// Whether metrics have a label with the name of the cluster.
    pub(super) is_named: bool,
    /// The labels of the cluster's counts.
    pub(super) labels: Labels,
    /// The prefix of the counts' names, if the user has set one.
    pub(super) stem: Option<String>,
    /// The file with the totals.
    pub(super) file: StateFile,
    /// The totals that scrapes see. They are stored in `file` first.
    pub(super) ledger: RefCell<Ledger>,
    /// How often the totals have changed.
    pub(super) changes: Cell<u64>,
    /// The clock of the session.
    pub(super) clock: Clock,
    /// The metrics of the exporter itself.
    pub(super) meters: Rc<RefCell<Meters>>,
}

/// The exporter's own metrics of one cluster.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// The number of requests by target and status. The status is `None` if there was no response.
    requests: BTreeMap<(&'static str, Option<u16>), u64>,
    retries: BTreeMap<&'static str, u64>,
    /// How often reading a window has failed, by the error's code.
    failures: BTreeMap<&'static str, u64>,
    store_failures: u64,
    /// The number of provisional revisions, and of settled revisions.
    revisions: [u64; 2],
    /// The number of settled windows whose reported totals differ from the sums of their counts.
    contradictions: u64,
    /// When the last token was received, in milliseconds on the monotonic clock.
    token_ms: Option<u64>,
    /// When the last window settled, in milliseconds on the monotonic clock. Before the first one, this is the time at which the
    /// exporter began.
    settled_ms: u64,
    /// Whether the last window has settled, so that no revision follows.
    is_done: bool,
    /// Why the last request failed; `None` if it was successful.
    trouble: Option<Code>,
    /// Why the state can't be stored; `None` if it can be.
    unstored: Option<String>,
    /// The text of the error if the state is from the future. Until the clock has reached the time of the state, no window
    /// is read.
    ahead: Option<String>,
    /// How many milliseconds the wall clock is ahead of the service's.
    ahead_ms: i64,
}

impl Meters {
    /// Creates the metrics of an exporter that begins at this time, in milliseconds on the monotonic clock.
    pub(super) fn new(now_ms: u64) -> Self {
        Self { settled_ms: now_ms, ..Self::default() }
    }

    /// Counts a request that has ended.
    pub(super) fn take(&mut self, attempt: &Attempt, now_ms: u64) {
        let target = attempt.target.as_str();
        *self.requests.entry((target, attempt.status)).or_default() += 1;
        if attempt.number > 1 {
            *self.retries.entry(target).or_default() += 1;
        }
        if attempt.target == Target::Token && attempt.code.is_none() {
            self.token_ms = Some(now_ms);
        }
        self.ahead_ms = attempt.clock.as_ref().map_or(0, |clock| clock.ahead_ms);
        // The follow sends requests only while the state is not from the future.
        self.ahead = None;
        // Ignore an error about an expired token if a retry follows: the core replaces the token first.
        self.trouble =
            attempt.code.filter(|code| code.kind() != Kind::Auth || attempt.wait_ms.is_none());
    }

    /// Records that the state could not be stored. Returns whether this is the first failure since the state was last stored.
    fn note_unstored(&mut self, failure: &Failure) -> bool {
        self.store_failures += 1;
        self.unstored.replace(failure.text.clone()).is_none()
    }
}

impl Exporter {
    /// Adds up windows as they settle, until all have settled or the shutdown begins.
    ///
    /// # Errors
    /// For counts that can't be added.
    pub(super) async fn run(
        &self,
        app: &App,
        mut following: Following,
        shutdown: &Shutdown,
    ) -> Result<()> {
        while let Some(found) = shutdown.unless_begun(following.next()).await {
            match found {
                FollowEvent::Done => {
                    self.meters.borrow_mut().is_done = true;
                    break;
                }
                FollowEvent::Ahead(error) => {
                    let failure = self.file.as_failure(error);
                    if self.meters.borrow_mut().ahead.replace(failure.text.clone()).is_none() {
                        let text =
                            "the totals do not change until the clock has reached their time";
                        app.stderr.error(format_args!("{}: {failure}; {text}", self.name));
                    }
                    if shutdown.unless_begun(sleep(PAUSE)).await.is_none() {
                        break;
                    }
                }
                FollowEvent::Failed(window, error) => {
                    *self.meters.borrow_mut().failures.entry(error.code().as_str()).or_default() +=
                        1;
                    app.warn_unread(&self.name, window, &Failure::from(error));
                }
                FollowEvent::Revision(revision) => {
                    self.add(app, &revision, following.state(), shutdown).await?
                }
            }
        }
        Ok(())
    }

    async fn add(
        &self,
        app: &App,
        revision: &Revision,
        state: String,
        shutdown: &Shutdown,
    ) -> Result<()> {
        let mut ledger = self.ledger.borrow().clone();
        let had_note = ledger.note().is_some();
        ledger.add(revision, state)?;
        if let Some(note) = ledger.note().filter(|_| !had_note) {
            app.stderr.warning(format_args!("{}: {}", self.name, note));
        }
        let contradicts = app.warn_contradiction(&self.name, revision);
        // Store the totals first. Otherwise, a scrape could see totals that are lost if the process restarts.
        if self.store(app, ledger.to_json(), shutdown).await {
            self.ledger.replace(ledger);
            self.changes.set(self.changes.get() + 1);
            let mut meters = self.meters.borrow_mut();
            meters.revisions[usize::from(revision.settled)] += 1;
            meters.contradictions += u64::from(contradicts);
            if revision.settled {
                meters.settled_ms = self.clock.now().monotonic_ms;
            }
        }
        Ok(())
    }

    /// Stores the totals, and retries until they are stored or the shutdown begins. Returns whether they are stored. Until
    /// they are stored, scrapes see the previous totals.
    async fn store(&self, app: &App, document: String, shutdown: &Shutdown) -> bool {
        loop {
            let failure = match self.file.replace(document.clone()).await {
                Ok(()) => {
                    if self.meters.borrow_mut().unstored.take().is_some() {
                        app.stderr
                            .note(format_args!("{}: the state can be stored again", self.name));
                    }
                    return true;
                }
                Err(failure) => failure,
            };
            if self.meters.borrow_mut().note_unstored(&failure) {
                let text = "the totals do not change until the state can be stored";
                app.stderr.error(format_args!("{}: {failure}; {text}", self.name));
            }
            if shutdown.unless_begun(sleep(PAUSE)).await.is_none() {
                return false;
            }
        }
    }

    /// Returns why the cluster is unhealthy; `None` if it is healthy.
    pub(super) fn complaint(&self, stale_ms: u64) -> Option<String> {
        let meters = self.meters.borrow();
        if let Some(text) = meters.ahead.as_ref().or(meters.unstored.as_ref()) {
            return Some(text.clone());
        }
        if let Some(code) = meters.trouble.filter(|code| code.kind() == Kind::Auth) {
            return Some(format!("the service refuses the credentials ({})", code.as_str()));
        }
        let ms = self.clock.now().monotonic_ms.saturating_sub(meters.settled_ms);
        if meters.is_done || ms <= stale_ms {
            let code = meters.trouble.filter(|_| meters.revisions == [0, 0])?;
            let code = code.as_str();
            return Some(format!("nothing has been read yet; the last request failed ({code})"));
        }
        let why =
            meters.trouble.map(|code| format!("; the last request failed ({})", code.as_str()));
        Some(format!("no window has settled for {} s{}", ms / 1000, why.unwrap_or_default()))
    }

    /// Adds the totals to a scrape.
    ///
    /// # Errors
    /// For labels and names that can't be used.
    pub(super) fn add_totals(&self, scrape: &mut Scrape) -> tallyfold::Result<()> {
        self.ledger.borrow().add_to(scrape, &self.labels, self.stem.as_deref())
    }

    /// Adds the exporter's own metrics to a scrape.
    pub(super) fn add_meters(&self, scrape: &mut Scrape, stale_ms: u64) {
        let meters = self.meters.borrow();
        let family = REQUESTS.of(scrape);
        for ((target, status), count) in &meters.requests {
            let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
            self.sample(family, &[("status", &status), ("target", target)], count);
        }
        let family = RETRIES.of(scrape);
        for (target, count) in &meters.retries {
            self.sample(family, &[("target", target)], count);
        }
        let family = FAILURES.of(scrape);
        for (code, count) in &meters.failures {
            self.sample(family, &[("code", code)], count);
        }
        let family = REVISIONS.of(scrape);
        for (settled, count) in ["false", "true"].iter().zip(meters.revisions) {
            self.sample(family, &[("settled", settled)], count);
        }
        self.sample(CONTRADICTIONS.of(scrape), &[], meters.contradictions);
        self.sample(STORE_FAILURES.of(scrape), &[], meters.store_failures);
        let now = self.clock.now();
        let family = TOKEN_AGE.of(scrape);
        if let Some(token_ms) = meters.token_ms {
            let age_ms = now.monotonic_ms.saturating_sub(token_ms);
            let age = Seconds(i64::try_from(age_ms).unwrap_or(i64::MAX));
            self.sample(family, &[], age);
        }
        let family = LAG.of(scrape);
        if let Some(end) = self.ledger.borrow().settled_until() {
            let lag = Seconds(now.unix_ms.saturating_sub(end.unix_ms()));
            self.sample(family, &[], lag);
        }
        self.sample(CLOCK.of(scrape), &[], Seconds(meters.ahead_ms));
        let is_healthy = self.complaint(stale_ms).is_none();
        self.sample(HEALTHY.of(scrape), &[], u8::from(is_healthy));
    }

    fn sample(&self, family: &mut Family, labels: &[(&str, &str)], value: impl Display) {
        let own = self.is_named.then_some(("cluster", self.name.as_str()));
        family.sample(own.into_iter().chain(labels.iter().copied()), value);
    }
}

/// One of the exporter's own metrics: name, kind, unit and meaning.
pub(in super::super) struct Meter(
    pub(in super::super) &'static str,
    pub(in super::super) FamilyKind,
    pub(in super::super) &'static str,
    pub(in super::super) &'static str,
);

impl Meter {
    pub(in super::super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self(name, FamilyKind::Counter, "", help)
    }

    /// Creates a gauge without a unit.
    pub(in super::super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self(name, FamilyKind::Gauge, "", help)
    }

    /// Creates a gauge of seconds.
    pub(in super::super) const fn seconds(name: &'static str, help: &'static str) -> Self {
        Self(name, FamilyKind::Gauge, "seconds", help)
    }

    /// Returns the metric's family in a scrape. All clusters add the families in the same order, so the order never changes.
    pub(in super::super) fn of<'a>(&self, scrape: &'a mut Scrape) -> &'a mut Family {
        scrape.family(self.0, self.1, self.2, self.3)
    }

    /// Returns the name of the metric's samples.
    pub(super) fn sample_name(&self) -> String {
        format!("{}{}", self.0, self.1.suffix())
    }

    /// Returns the meaning of the metric.
    pub(super) fn help(&self) -> &'static str {
        self.3
    }
}

pub(super) const REQUESTS: Meter = Meter::counter(
    "tallyfold_exporter_requests",
    "Requests to the service by target and status; none if there was no response",
);
const RETRIES: Meter =
    Meter::counter("tallyfold_exporter_retries", "Requests to the service that were sent again");
pub(super) const FAILURES: Meter = Meter::counter(
    "tallyfold_exporter_reading_failures",
    "Failed attempts to read a window, by error code",
);
pub(super) const REVISIONS: Meter = Meter::counter(
    "tallyfold_exporter_revisions",
    "Stored revisions of windows; the totals contain the settled revisions",
);
pub(super) const CONTRADICTIONS: Meter = Meter::counter(
    "tallyfold_exporter_contradictory_windows",
    "Settled windows whose reported totals differ from the sums of their counts",
);
pub(super) const STORE_FAILURES: Meter =
    Meter::counter("tallyfold_exporter_store_failures", "Failed attempts to store the totals");
pub(super) const TOKEN_AGE: Meter = Meter::seconds(
    "tallyfold_exporter_token_age_seconds",
    "Time since the last token was obtained",
);
pub(super) const LAG: Meter = Meter::seconds(
    "tallyfold_exporter_settled_lag_seconds",
    "Time since the end of the newest window in the totals",
);
pub(super) const CLOCK: Meter = Meter::seconds(
    "tallyfold_exporter_clock_ahead_seconds",
    "By how much this machine's clock is ahead of the service's; 0 if they differ by no more than a minute",
);
pub(super) const HEALTHY: Meter = Meter::gauge(
    "tallyfold_exporter_healthy",
    "Whether windows settle, and the service accepts the credentials: 1 or 0",
);
pub(super) const SCRAPE_ERRORS: Meter =
    Meter::counter("tallyfold_exporter_scrape_errors", "Scrapes that could not be answered");
pub(super) const BUILD: Meter =
    Meter("tallyfold_exporter_build", FamilyKind::Info, "", "The version of this program");
