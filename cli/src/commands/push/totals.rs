//! `tallyfold push --follow --cumulative`: sends running totals of settled windows when they change, and repeats them at
//! intervals.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join_all, select};
use tallyfold::{Api, Code};
use tallyfold_export::{Export, Labels, Ledger, Push, PushReport};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use super::follow::Plan;
use super::{Pushed, add, detail, rejections};
use crate::app::App;
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Result};
use crate::host::carry::{Carried, Carrier};
use crate::host::ranges::Following;
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::host::state::StateFile;

/// The push of one cluster's totals.
struct Totals<'a> {
    app: &'a App,
    plan: &'a Plan<'a>,
    every: Duration,
    cluster: Cluster,
    session: Rc<Session>,
    labels: Labels,
    file: StateFile,
    /// The totals as they are on the disk. [`Totals::change`] stores a change before it makes the change here.
    ledger: Mutex<Ledger>,
    /// Wakes `send_all` when totals have changed, and when the follow has ended.
    changed: Notify,
    is_done: Cell<bool>,
    total: RefCell<PushReport>,
}

/// Sends totals until all windows are settled, or until Ctrl-C or SIGTERM.
///
/// # Errors
/// For flags, settings and states that can't be used. In this case, this function sends nothing.
pub(crate) async fn run(
    app: &App,
    plan: &Plan<'_>,
    every: Duration,
) -> Result<(Vec<Pushed>, Exit)> {
    let mut all = Vec::new();
    for (cluster, session) in app.sessions()? {
        all.push(begin(app, plan, every, cluster, session).await?);
    }
    let shutdown = Shutdown::new();
    let work = join_all(all.iter_mut().map(|(totals, following, carrier)| {
        let totals = &*totals;
        let shutdown = &shutdown;
        async move {
            let result = totals.run(following, carrier, shutdown).await;
            // Report a failure immediately, because the pushes of other clusters may run for days.
            app.fail_if(&totals.cluster.name, result)
        }
    }));
    let exit = match until_shut_down(&app.stop, &shutdown, work).await {
        Err(exit) => exit,
        Ok(results) => Exit::of_clusters(&results),
    };
    let pushed = all.into_iter().map(|(totals, ..)| Pushed {
        cluster: totals.cluster.name,
        report: totals.total.into_inner(),
    });
    Ok((pushed.collect(), exit))
}

async fn begin<'a>(
    app: &'a App,
    plan: &'a Plan<'a>,
    every: Duration,
    cluster: Cluster,
    session: Rc<Session>,
) -> Result<(Totals<'a>, Following, Carrier)> {
    let labels = labels_of(&app.settings, &cluster, plan.labels)?;
    let file = StateFile::of_cluster(plan.state, &app.settings, &cluster)?;
    let mut ledger = file.load(Ledger::from_json)?;
    let options = plan.follow.options(ledger.state(), unix_ms())?;
    let following = Following::new(Rc::clone(&session), &options, Some(&file))?;
    ledger.begin(following.state());
    // Try an export now, to reject invalid labels and names. An export needs a stamped ledger. Stamp only a copy: the first
    // stamp of a ledger is permanent, and the clock may still be wrong.
    let mut trial = ledger.clone();
    if trial.stamped().is_none() {
        trial.stamp(unix_ms())?;
    }
    Export::new(trial.totals()?, &plan.destination.export(&labels))?;
    file.replace(ledger.to_json()).await?;
    let totals = Totals {
        app,
        plan,
        every,
        cluster,
        session,
        labels,
        file,
        ledger: Mutex::new(ledger),
        changed: Notify::new(),
        is_done: Cell::new(false),
        total: RefCell::default(),
    };
    Ok((totals, following, plan.destination.carrier(&app.stderr)?))
}

impl Totals<'_> {
    /// Follows and sends at the same time, so that an outage of the destination does not delay the reading of windows.
    async fn run(
        &self,
        following: &mut Following,
        carrier: &mut Carrier,
        shutdown: &Shutdown,
    ) -> Result<()> {
        let following = pin!(self.follow(following, shutdown));
        let sending = pin!(self.send_all(carrier, shutdown));
        match select(following, sending).await {
            Either::Right((sent, _)) => sent,
            Either::Left((followed, sending)) => {
                self.is_done.set(true);
                self.changed.notify_one();
                let sent = sending.await;
                followed.and(sent)
            }
        }
    }

    /// Adds settled windows to the totals.
    async fn follow(&self, following: &mut Following, shutdown: &Shutdown) -> Result<()> {
        let name = &self.cluster.name;
        let file = Some(&self.file);
        while let Some(revision) = self.app.next_revision(following, file, shutdown).await? {
            let now_ms = self.session.corrected_ms().unwrap_or_else(unix_ms);
            let state = following.state();
            let mut had_note = false;
            let add = |ledger: &mut Ledger| {
                had_note = ledger.note().is_some();
                // The first stamp is the time at which the totals begin.
                if ledger.stamped().is_none() {
                    ledger.stamp(now_ms)?;
                }
                ledger.add(&revision, state)
            };
            let ledger = self.change(add).await?;
            if let Some(note) = ledger.note().filter(|_| !had_note) {
                self.app.warn(name, note);
            }
            if revision.settled {
                self.changed.notify_one();
            }
        }
        Ok(())
    }

    /// Changes the totals, and stores them. If the totals can't be stored, they stay as they were.
    async fn change(
        &self,
        change: impl FnOnce(&mut Ledger) -> tallyfold::Result<()>,
    ) -> Result<Ledger> {
        let mut ledger = self.ledger.lock().await;
        let mut next = ledger.clone();
        change(&mut next).map_err(|error| match error.code() {
            Code::InvalidCheckpoint => self.file.as_failure(error),
            _ => error.into(),
        })?;
        self.file.replace(next.to_json()).await?;
        *ledger = next.clone();
        Ok(next)
    }

    /// Sends the totals when they have changed, and repeats unchanged totals at the interval `every`.
    async fn send_all(&self, carrier: &mut Carrier, shutdown: &Shutdown) -> Result<()> {
        let mut warned = Vec::new();
        let mut failing_since = None;
        loop {
            let is_last = self.is_done.get();
            let has_totals = self.ledger.lock().await.settled_until().is_some();
            if has_totals && self.session.corrected_ms().is_none() {
                self.learn_time(shutdown).await?;
            }
            // Send the last totals even if the service is down, so that they are not lost.
            if has_totals && (is_last || self.session.corrected_ms().is_some()) {
                let begun = Instant::now();
                match self.send(carrier, shutdown, &mut warned).await {
                    Ok(Carried::Part) => return Ok(()),
                    Ok(Carried::All) => failing_since = None,
                    // OTLP forbids sending the same message again after a 500. The next totals are a new message, so continue.
                    Err(failure) if failure.code == Some(Code::ServerError) && !is_last => {
                        let is_first = failing_since.is_none();
                        let since = *failing_since.get_or_insert(begun);
                        let patience = self.plan.destination.patience();
                        if patience.is_some_and(|patience| since.elapsed() >= patience) {
                            return Err(failure);
                        }
                        if is_first {
                            let text =
                                format_args!("{}; the next totals make up for it", failure.text);
                            self.app.warn(&self.cluster.name, text);
                        }
                    }
                    Err(failure) => return Err(failure),
                }
            }
            if is_last {
                return Ok(());
            }
            if !self.is_done.get() {
                // Waits for a change, but not longer than `every`. A shutdown ends the follow, which then notifies, too.
                let _ = timeout(self.every, self.changed.notified()).await;
            }
        }
    }

    /// Requests a token, because the response shows the service's time. Ignores a failure, which the follow reports.
    async fn learn_time(&self, shutdown: &Shutdown) -> Result<()> {
        let call = self.session.machine.token(Api::Control)?;
        let _ = shutdown.unless_begun(self.session.run(call)).await;
        Ok(())
    }

    /// Stamps the totals with the current time, by the clock that is behind: this machine's or the service's. A stamp by a clock
    /// that is ahead would be in the future once that clock is corrected.
    ///
    /// [`Ledger::stamp`] refuses a time that is more than five minutes before the last stamp. So the time is at least the last
    /// stamp, or this machine's time if that is earlier.
    fn stamp(&self, ledger: &mut Ledger) -> tallyfold::Result<()> {
        let wall_ms = unix_ms();
        let now_ms = self.session.corrected_ms().unwrap_or(wall_ms);
        let stamped = ledger.stamped();
        let known_ms = stamped.map_or(now_ms, |stamped| stamped.unix_ms().min(wall_ms));
        ledger.stamp(now_ms.max(known_ms))
    }

    /// Stamps the totals with the current time, and sends them.
    async fn send(
        &self,
        carrier: &mut Carrier,
        shutdown: &Shutdown,
        warned: &mut Vec<String>,
    ) -> Result<Carried> {
        if shutdown.has_begun() {
            return Ok(Carried::Part);
        }
        let ledger = self.change(|ledger| self.stamp(ledger)).await?;
        let destination = self.plan.destination;
        let export = Export::new(ledger.totals()?, &destination.export(&self.labels))?;
        let notes: Vec<String> = export.notes().iter().map(ToString::to_string).collect();
        let mut push = Push::new(export, &destination.push(0))?;
        let carried = carrier.carry(&mut push, shutdown, async |_, _| Ok(())).await;
        let report = push.report();
        let name = &self.cluster.name;
        detail(self.app, name, report);
        add(&mut self.total.borrow_mut(), report);
        for text in notes.into_iter().chain(rejections(report)) {
            // The same totals are sent many times, so write each warning only once.
            if !warned.contains(&text) {
                self.app.warn(name, &text);
                warned.push(text);
            }
        }
        carried
    }
}
