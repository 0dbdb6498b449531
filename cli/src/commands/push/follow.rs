//! `tallyfold push --follow`: sends the revisions of each window that has ended. The state contains what has not been sent
//! yet, so a new process resumes where an earlier one stopped.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use tallyfold::Code;
use tallyfold_export::{Export, Labels, Outbox, Push, PushReport};
use tokio::time::sleep;

use super::destination::Destination;
use super::{Pushed, add, detail, rejections};
use crate::app::App;
use crate::arguments::following::FollowFlags;
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Result};
use crate::host::carry::{Carried, Carrier};
use crate::host::ranges::Following;
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::host::state::StateFile;
use crate::output::safe::escaped;

/// What a push follows, and where it sends the counts.
pub(crate) struct Plan<'a> {
    /// The flags for the windows to follow.
    pub(crate) follow: &'a FollowFlags,
    /// The destination of the counts.
    pub(crate) destination: &'a Destination,
    /// The labels from the command line.
    pub(crate) labels: &'a [String],
    /// The file or folder with the state: what has not been sent yet or, with `--cumulative`, the totals.
    pub(crate) state: &'a Path,
    /// Whether the state may have been created for another destination.
    pub(crate) has_moved: bool,
    /// The name of the destination's section, if this is one of several pushes of `tallyfold run`.
    pub(crate) name: Option<&'a str>,
}

impl Plan<'_> {
    /// Returns the beginning of a message about this push: its name, if it is one of several.
    fn prefix(&self) -> String {
        let name = self.name.map(|name| format!("push {name}: "));
        name.unwrap_or_default()
    }
}

/// The push of one cluster's revisions.
struct Sending<'a> {
    /// The beginning of each warning ([`Plan::prefix`]).
    prefix: String,
    state: &'a Path,
    app: &'a App,
    cluster: Cluster,
    destination: &'a Destination,
    labels: Labels,
    following: Following,
    file: StateFile,
    outbox: Outbox,
    carrier: Carrier,
    total: PushReport,
    progress: Rc<Progress>,
}

/// Sends revisions until all windows are settled, or until Ctrl-C or SIGTERM.
///
/// # Errors
/// For flags, settings and states that can't be used. In this case, this function sends nothing.
pub(crate) async fn run(app: &App, plan: &Plan<'_>) -> Result<(Vec<Pushed>, Exit)> {
    let mut all = Vec::new();
    for (cluster, session) in app.sessions()? {
        let progress = Rc::default();
        all.push(begin(app, plan, (cluster, session), progress).await?);
    }
    let shutdown = Shutdown::new();
    let work = join_all(all.iter_mut().map(|one| one.run(&shutdown)));
    let exit = match until_shut_down(&app.stop, &shutdown, work).await {
        Err(exit) => exit,
        Ok(results) => Exit::of_clusters(&results),
    };
    let pushed = all.into_iter().map(|one| Pushed { cluster: one.cluster.name, report: one.total });
    Ok((pushed.collect(), exit))
}

async fn begin<'a>(
    app: &'a App,
    plan: &Plan<'a>,
    (cluster, session): (Cluster, Rc<Session>),
    progress: Rc<Progress>,
) -> Result<Sending<'a>> {
    let labels = labels_of(&app.settings, &cluster, plan.labels)?;
    let file = StateFile::of_cluster(plan.state, &app.settings, &cluster)?;
    let mut outbox = file.load(Outbox::from_json)?;
    // Reject a format that can't represent changes, and a format other than the pending revision's.
    let finished = outbox.finished(plan.destination.format);
    finished.map_err(|error| error.renaming("format", &plan.destination.named))?;
    let options = plan.follow.options(outbox.state(), unix_ms())?;
    let following = Following::new(session, &options, Some(&file))?;
    let is_new = outbox.state().is_none();
    outbox.begin(following.state());
    let is_bound = outbox.send_to(&plan.destination.text(), plan.has_moved).map_err(|error| {
        let flag = plan.name.map_or_else(String::new, |name| format!(" {name}"));
        file.as_failure(error).helped_by(format!(
            "another --state, or, if the destination has moved, --moved{flag} once"
        ))
    })?;
    if is_new || is_bound {
        file.replace(outbox.to_json()).await?;
    }
    let mut carrier = plan.destination.carrier(&app.stderr)?;
    if plan.name.is_some() {
        carrier.label = format!("{}: {}", escaped(&cluster.name), plan.prefix());
    }
    Ok(Sending {
        prefix: plan.prefix(),
        state: plan.state,
        app,
        cluster,
        destination: plan.destination,
        labels,
        following,
        file,
        outbox,
        carrier,
        total: PushReport::default(),
        progress,
    })
}

/// The progress of a push, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of samples that the destination has accepted.
    pub(crate) samples: Cell<u64>,
    /// How often the push has failed.
    pub(crate) failures: Cell<u64>,
    /// The number of samples that the destination did not acknowledge and that are not sent again.
    pub(crate) unacknowledged: Cell<u64>,
    /// The number of failures since the destination last accepted a whole revision.
    pub(crate) failures_in_a_row: Cell<u32>,
    /// Since when revisions have been pending, in milliseconds since 1970; `None` if no revision is pending.
    pub(crate) waiting_since: Cell<Option<i64>>,
}

impl Progress {
    fn note(&self, report: &PushReport) {
        self.samples.set(self.samples.get() + report.samples);
    }

    /// Counts a failure, and returns the pause before the next attempt. With each further failure, the pause doubles.
    fn fail(&self) -> Duration {
        self.failures.set(self.failures.get() + 1);
        let in_a_row = self.failures_in_a_row.get();
        self.failures_in_a_row.set(in_a_row.saturating_add(1));
        let [shortest, longest] = PAUSES;
        let pause = shortest.saturating_mul(2_u32.saturating_pow(in_a_row));
        pause.min(longest)
    }
}

/// The minimum and the maximum pause before a failed push restarts.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// A push of one cluster by `tallyfold run`. It restarts after a failure.
pub(crate) struct Part<'a> {
    app: &'a App,
    plan: Plan<'a>,
    of: (Cluster, Rc<Session>),
    progress: Rc<Progress>,
    /// The first attempt, as `new` has prepared it; `None` once it has started.
    first: Option<Sending<'a>>,
}

impl<'a> Part<'a> {
    /// Opens the state of the push.
    ///
    /// # Errors
    /// For settings and a state that can't be used. In this case, this function sends nothing.
    pub(crate) async fn new(
        app: &'a App,
        plan: Plan<'a>,
        of: (Cluster, Rc<Session>),
    ) -> Result<Self> {
        let progress = Rc::default();
        let first = begin(app, &plan, of.clone(), Rc::clone(&progress)).await?;
        Ok(Self { app, plan, of, progress, first: Some(first) })
    }

    /// Returns the progress of the push, which changes as the push runs.
    pub(crate) fn progress(&self) -> Rc<Progress> {
        Rc::clone(&self.progress)
    }

    /// Sends revisions until all windows are settled, or until the shutdown begins. After a failure, restarts from the stored
    /// state as a new process would, because the state in memory may be ahead of the file.
    pub(crate) async fn run(&mut self, shutdown: &Shutdown) {
        while let Err(failure) = self.attempt(shutdown).await {
            let pause = self.progress.fail();
            let (cluster, seconds) = (&self.of.0.name, pause.as_secs());
            let prefix = self.plan.prefix();
            let text = format_args!("{prefix}{failure}; retrying in {seconds} s");
            self.app.warn(cluster, text);
            self.app.stderr.suggest(&failure);
            if shutdown.unless_begun(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn attempt(&mut self, shutdown: &Shutdown) -> Result<()> {
        let mut sending = match self.first.take() {
            Some(first) => first,
            None => {
                let progress = Rc::clone(&self.progress);
                begin(self.app, &self.plan, self.of.clone(), progress).await?
            }
        };
        sending.send_all(shutdown).await
    }
}

impl Sending<'_> {
    /// Sends all revisions. Reports a failure immediately, because the pushes of other clusters may run for days.
    async fn run(&mut self, shutdown: &Shutdown) -> Option<Exit> {
        let result = self.send_all(shutdown).await;
        self.app.fail_if(&self.cluster.name, result)
    }

    async fn send_all(&mut self, shutdown: &Shutdown) -> Result<()> {
        // First send the samples that an earlier process has left unsent.
        let mut carried = self.send(shutdown).await?;
        while carried == Carried::All {
            let (app, file) = (self.app, Some(&self.file));
            let next = app.next_revision(&mut self.following, file, shutdown);
            let Some(revision) = next.await? else { break };
            let state = self.following.state();
            self.outbox.put(&revision, state, self.destination.format)?;
            self.file.replace(self.outbox.to_json()).await?;
            carried = self.send(shutdown).await?;
        }
        Ok(())
    }

    /// Sends pending revisions until there are none.
    async fn send(&mut self, shutdown: &Shutdown) -> Result<Carried> {
        loop {
            let Some((source, finished)) = self.outbox.pending(self.destination.format)? else {
                self.report_dropped().await?;
                self.progress.waiting_since.set(None);
                return Ok(Carried::All);
            };
            if self.progress.waiting_since.get().is_none() {
                let now = self.carrier.clock.now();
                self.progress.waiting_since.set(Some(now.unix_ms));
            }
            let in_doubt = self.warn_of_doubt();
            let export = Export::new(source, &self.destination.export(&self.labels))?;
            for note in export.notes() {
                self.warn(format_args!("{note}"));
            }
            let options = self.destination.push(finished).in_doubt(in_doubt);
            let mut push = Push::new(export, &options)?;
            let (file, outbox) = (&self.file, &mut self.outbox);
            let store = async |samples, in_doubt| {
                outbox.finish(samples, in_doubt);
                file.replace(outbox.to_json()).await
            };
            let carried = self.carrier.carry(&mut push, shutdown, store).await;
            let report = push.report().clone();
            add(&mut self.total, &report);
            self.progress.note(&report);
            detail(self.app, &self.cluster.name, &report);
            for text in rejections(&report) {
                self.warn(format_args!("{text}"));
            }
            let is_doubted = report.unsure > in_doubt;
            if let (Err(failure), true) = (&carried, is_doubted) {
                let unacknowledged = &self.progress.unacknowledged;
                unacknowledged.set(unacknowledged.get() + report.unsure - in_doubt);
                self.warn(format_args!(
                    "{}; {} samples are unacknowledged and will not be sent again",
                    failure.text,
                    report.unsure - in_doubt
                ));
            }
            if carried.is_err() && push.outcome().is_none() {
                // The push has no outcome, because the state could not be stored. Leave the file as it is.
                return carried;
            }
            if matches!(carried, Ok(Carried::All)) {
                self.progress.failures_in_a_row.set(0);
                self.outbox.clear();
            }
            // Store that the user was warned about unacknowledged samples, so that the next run does not repeat the warnings.
            self.outbox.acknowledge(report.unsure);
            self.file.replace(self.outbox.to_json()).await?;
            match carried {
                Ok(Carried::All) => {}
                Ok(Carried::Part) => return Ok(Carried::Part),
                // The unacknowledged samples count as finished, so the next push begins after them. While the destination is
                // down, each attempt can lose a message, so the pauses between attempts grow.
                Err(_) if is_doubted => {
                    let pause = self.progress.fail();
                    if shutdown.unless_begun(sleep(pause)).await.is_none() {
                        return Ok(Carried::Part);
                    }
                }
                Err(failure) if is_refused(&push) => {
                    return Err(failure.helped_by(self.drop_command()));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Reports the unacknowledged samples of a revision that was dropped.
    async fn report_dropped(&mut self) -> Result<()> {
        let in_doubt = self.warn_of_doubt();
        if in_doubt > 0 {
            self.total.unsure += in_doubt;
            self.outbox.acknowledge(in_doubt);
            self.file.replace(self.outbox.to_json()).await?;
        }
        Ok(())
    }

    /// Warns about the samples that an earlier run left unacknowledged, and returns their number.
    fn warn_of_doubt(&self) -> u64 {
        let in_doubt = self.outbox.in_doubt();
        if in_doubt > 0 {
            self.warn(format_args!(
                "an earlier run ended while it was sending {in_doubt} samples; they are unacknowledged and will not be \
                 sent again"
            ));
        }
        in_doubt
    }

    /// Returns the command that drops the pending revision.
    fn drop_command(&self) -> String {
        let state = self.state.display();
        let cluster = match self.app.settings.is_named {
            true => format!(" --cluster {}", self.cluster.name),
            false => String::new(),
        };
        format!(
            "tallyfold push drop --state {state}{cluster}, if the destination permanently refuses the pending revision"
        )
    }

    fn warn(&self, text: std::fmt::Arguments<'_>) {
        let prefix = &self.prefix;
        self.app.warn(&self.cluster.name, format_args!("{prefix}{text}"));
    }
}

/// Returns whether the destination has permanently refused a message, so that it would refuse the same message again.
fn is_refused<S: tallyfold::sending::Source>(push: &tallyfold::sending::Push<S>) -> bool {
    let refused = |error: &tallyfold::Error| match error.status() {
        Some(400..500) => !matches!(error.code(), Code::Forbidden | Code::RateLimited),
        // Prometheus before 2.49 refuses samples with status 500.
        Some(500) => push.report().retries == 0,
        _ => false,
    };
    matches!(push.outcome(), Some(Err(error)) if refused(error))
}
