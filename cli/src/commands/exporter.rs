//! One cluster of `tallyfold serve`: its totals, what is measured of the exporter itself, and whether all is well.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tallyfold::{Attempt, Code, Kind, Revision, Target};
use tallyfold_export::{Labels, Ledger};
use tokio::time::sleep;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::host::clock::Clock;
use crate::host::files::StateFile;
use crate::host::ranges::{FollowEvent, Following};
use crate::host::shutdown::Shutdown;
use crate::output::exposition::Exposition;

/// How long after a failure the state is stored again.
const STORE_AGAIN: Duration = Duration::from_secs(2);

/// One cluster.
pub(crate) struct Exporter {
    /// The name of the cluster.
    pub(crate) name: String,
    /// Whether metrics say which cluster they are of.
    pub(crate) is_named: bool,
    /// The labels of its counts.
    pub(crate) labels: Labels,
    /// What the names of its counts begin with.
    pub(crate) stem: Option<String>,
    /// Where the totals are stored.
    pub(crate) file: StateFile,
    /// The totals that scrapes see: they are on the disk.
    pub(crate) ledger: RefCell<Ledger>,
    /// The time.
    pub(crate) clock: Clock,
    /// What was measured.
    pub(crate) meters: Rc<RefCell<Meters>>,
}

/// What is measured of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// By target and status; no status if there was no response.
    requests: BTreeMap<(&'static str, Option<u16>), u64>,
    retries: BTreeMap<&'static str, u64>,
    /// Readings that failed, by the code of the error.
    failures: BTreeMap<&'static str, u64>,
    store_failures: u64,
    /// Provisional and settled ones.
    revisions: [u64; 2],
    /// When the last token came, on the monotonic clock.
    token_ms: Option<u64>,
    /// When a window was settled last, or the process started.
    settled_ms: u64,
    /// Whether the last window has settled: nothing is to come any more.
    is_done: bool,
    /// Why the last request failed.
    trouble: Option<Code>,
    /// Why the state can't be stored.
    unstored: Option<String>,
}

impl Meters {
    /// Takes a request that has ended.
    pub(crate) fn take(&mut self, attempt: &Attempt, now_ms: u64) {
        let target = attempt.target.as_str();
        *self.requests.entry((target, attempt.status)).or_default() += 1;
        if attempt.number > 1 {
            *self.retries.entry(target).or_default() += 1;
        }
        if attempt.target == Target::Token && attempt.code.is_none() {
            self.token_ms = Some(now_ms);
        }
        // A token that has expired is replaced, and the request sent again: that is no trouble.
        self.trouble = attempt
            .code
            .filter(|code| code.kind() != Kind::Auth || attempt.wait_ms.is_none());
    }

    /// Takes that the state could not be stored; whether that is new.
    fn note_unstored(&mut self, failure: &Failure) -> bool {
        self.store_failures += 1;
        self.unstored.replace(failure.text.clone()).is_none()
    }
}

impl Exporter {
    /// Adds up settled windows until all are there, or until the command is to end.
    ///
    /// # Errors
    /// For counts that can't be added.
    pub(crate) async fn run(
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
                FollowEvent::Failed(window, error) => {
                    *self
                        .meters
                        .borrow_mut()
                        .failures
                        .entry(error.code().as_str())
                        .or_default() += 1;
                    app.warn_unread(&self.name, window, &Failure::from(error));
                }
                FollowEvent::Revision(revision) => {
                    self.add(app, &revision, following.state(), shutdown)
                        .await?
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
            app.stderr
                .warning(format_args!("{}: {}", self.name, note.message));
        }
        // On the disk first: a scrape must not see what a restart would take back.
        if self.store(app, ledger.to_json(), shutdown).await {
            self.ledger.replace(ledger);
            let mut meters = self.meters.borrow_mut();
            meters.revisions[usize::from(revision.settled)] += 1;
            if revision.settled {
                meters.settled_ms = self.clock.now().monotonic_ms;
            }
        }
        Ok(())
    }

    /// Stores the totals, and tries until that works; whether it did. Scrapes see the totals before meanwhile.
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
                let text = "totals stay as they are until it can be stored";
                app.stderr
                    .error(format_args!("{}: {failure}; {text}", self.name));
            }
            if shutdown.unless_begun(sleep(STORE_AGAIN)).await.is_none() {
                return false;
            }
        }
    }

    /// What is not well; `None` if nothing.
    pub(crate) fn complaint(&self, stale_ms: u64) -> Option<String> {
        let meters = self.meters.borrow();
        if let Some(text) = &meters.unstored {
            return Some(text.clone());
        }
        if let Some(code) = meters.trouble.filter(|code| code.kind() == Kind::Auth) {
            return Some(format!(
                "the service refuses the credentials ({})",
                code.as_str()
            ));
        }
        let ms = self
            .clock
            .now()
            .monotonic_ms
            .saturating_sub(meters.settled_ms);
        if meters.is_done || ms <= stale_ms {
            let code = meters.trouble.filter(|_| meters.revisions == [0, 0])?;
            let code = code.as_str();
            return Some(format!(
                "nothing was read yet; the last request failed ({code})"
            ));
        }
        let why = meters
            .trouble
            .map(|code| format!("; the last request failed ({})", code.as_str()));
        Some(format!(
            "no window has settled for {} s{}",
            ms / 1000,
            why.unwrap_or_default()
        ))
    }

    /// Adds the totals to those of other clusters.
    ///
    /// # Errors
    /// For labels and names that can't be used.
    pub(crate) fn add_totals(&self, all: &mut Exposition) -> tallyfold::Result<()> {
        let ledger: Ref<'_, Ledger> = self.ledger.borrow();
        all.add_text(&ledger.openmetrics(&self.labels, self.stem.as_deref())?);
        Ok(())
    }

    /// Adds what was measured of the exporter itself.
    pub(crate) fn add_meters(&self, all: &mut Exposition, stale_ms: u64) {
        self.add_counters(all);
        let now = self.clock.now();
        if let Some(token_ms) = self.meters.borrow().token_ms {
            let age_ms = now.monotonic_ms.saturating_sub(token_ms);
            self.sample(all, TOKEN_AGE, &[], seconds(age_ms.into()));
        }
        if let Some(end) = self.ledger.borrow().settled_until() {
            let lag_ms = now.unix_ms.saturating_sub(end.unix_ms());
            self.sample(all, LAG, &[], seconds(lag_ms.into()));
        }
        let is_healthy = self.complaint(stale_ms).is_none();
        self.sample(all, HEALTHY, &[], u8::from(is_healthy).to_string());
    }

    fn add_counters(&self, all: &mut Exposition) {
        let meters = self.meters.borrow();
        for ((target, status), count) in &meters.requests {
            let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
            let labels = [("status", status.as_str()), ("target", *target)];
            self.sample(all, REQUESTS, &labels, count.to_string());
        }
        for (target, count) in &meters.retries {
            self.sample(all, RETRIES, &[("target", target)], count.to_string());
        }
        for (code, count) in &meters.failures {
            self.sample(all, FAILURES, &[("code", code)], count.to_string());
        }
        for (settled, count) in ["false", "true"].iter().zip(meters.revisions) {
            self.sample(all, REVISIONS, &[("settled", settled)], count.to_string());
        }
        self.sample(all, STORE_FAILURES, &[], meters.store_failures.to_string());
    }

    fn sample(&self, all: &mut Exposition, name: &str, labels: &[(&str, &str)], value: String) {
        let own = self.is_named.then_some(("cluster", self.name.as_str()));
        let labels: Vec<(&str, &str)> = own.into_iter().chain(labels.iter().copied()).collect();
        all.sample(name, &labels, value);
    }
}

const REQUESTS: &str = "tallyfold_exporter_requests";
const RETRIES: &str = "tallyfold_exporter_retries";
const FAILURES: &str = "tallyfold_exporter_reading_failures";
const REVISIONS: &str = "tallyfold_exporter_revisions";
const STORE_FAILURES: &str = "tallyfold_exporter_store_failures";
const TOKEN_AGE: &str = "tallyfold_exporter_token_age_seconds";
const LAG: &str = "tallyfold_exporter_settled_lag_seconds";
const HEALTHY: &str = "tallyfold_exporter_healthy";

/// Name, type, unit and meaning of the exporter's own metrics.
#[rustfmt::skip]
const METERS: [[&str; 4]; 8] = [
    [REQUESTS, "counter", "", "Requests to the service by target and status; none if there was no response"],
    [RETRIES, "counter", "", "Requests to the service that were sent again"],
    [FAILURES, "counter", "", "Readings of windows that failed, by the code of the error"],
    [REVISIONS, "counter", "", "Readings of windows that were stored; settled ones are in the totals"],
    [STORE_FAILURES, "counter", "", "Failed attempts to store the totals"],
    [TOKEN_AGE, "gauge", "seconds", "Time since the last token was obtained"],
    [LAG, "gauge", "seconds", "Time since the end of the newest window in the totals"],
    [HEALTHY, "gauge", "", "Whether windows settle, and the service accepts the credentials: 1 or 0"],
];

/// Names the exporter's own metrics.
pub(crate) fn describe(all: &mut Exposition) {
    for [name, kind, unit, help] in METERS {
        all.describe(name, kind, unit, help);
    }
}

/// Milliseconds as seconds with three decimals.
fn seconds(ms: i128) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03}", ms / 1000, ms % 1000)
}
