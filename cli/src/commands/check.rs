//! `tallyfold check`: applies rules to counts and their history, and reports what is wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use tallyfold::keeper::check_past;
use tallyfold::text::{duration, grouped};
use tallyfold::{CollectOptions, Dimension, Metric, TimeStep, Timestamp, Window};
use tallyfold_health::{Incident, ObservedPages, Pages, Rules, Severity, State, Status, Unjudged};
use tokio::time::sleep;

use crate::app::{App, each};
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::following::FollowFlags;
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::query::{DAY_MS, RangeFlags, instant, time_of};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};
use crate::files::file_name;
use crate::health::files::{Memory, Places, places, places_below, rules, service};
use crate::health::history::{History, Past, Wanted, read};
use crate::health::notify::{Notifier, NotifyFlags};
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::Shutdown;
use crate::host::state::StateFile;
use crate::output::check::{self, CheckFormat, CheckReport, Checked, Verdict, write};
use crate::output::report::{Part, Report, contradicted, spans};
use crate::output::safe::escaped;
use crate::stderr::{Bars, show};

pub(crate) mod hold;

use hold::HoldAction;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold check
      A cron job: prints a sentence for each incident, and exits with 1 if something is wrong.
  tallyfold check --rules health.toml --alertmanager http://127.0.0.1:9093 --quiet
      Applies your rules, and notifies an Alertmanager of what fires and what is resolved.
  tallyfold check --rules health.toml --replay --since 30d
      When these rules would have fired in the last month.
  tallyfold check ack 3f2a --note 'the vendor is on it'
      Somebody knows of the incident: later runs exit with 0, and notify nobody, until it becomes more severe.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
The first run reads the history that the rules look back on: ten and a half weeks for the standard
rules, which may take some minutes. It judges the last day first. Later runs read only what is new.
If clusters have names, --state and --history are folders with files for each cluster.
An alert is sent when as many windows are bad as the rule's key `for` requires, and their counts no
longer change: --settle after the end of the last of them. Until then, the finding is pending or
provisional. Run this command every few minutes.
Exit codes: 0 if no warning or critical finding fires, or only silenced or provisional ones; 1 if
one fires; 2 for invalid flags, rules or files; 3 or 4 if the service or a receiver refuses the
credentials or fails; 6 if windows or clusters are missing, or if a finding can't be judged any
more, so that nothing shows whether it is over.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CheckFlags {
    /// What to do instead of a check.
    #[command(subcommand)]
    pub(crate) action: Option<HoldAction>,
    /// The file with the rules [default: health.toml here, or the standard rules]
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    rules: Option<PathBuf>,
    /// Where a run stores its state for the next run [default: next to the rules, such as health.state]
    #[arg(long, value_name = "PATH", help_heading = "Rules")]
    state: Option<PathBuf>,
    /// Where to keep the counts that rules look back on [default: next to the rules, such as health.history]
    #[arg(long, value_name = "FOLDER", help_heading = "Rules")]
    history: Option<PathBuf>,
    /// Checks as if it were this time, UTC: 2026-01-31T03:00:00Z
    ///
    /// If the time is in the future, windows that have not ended are reported as not judged, the command exits with 6, and
    /// later runs refuse the --state until then: a run refuses a state whose last check was at a later time.
    #[arg(
        long,
        value_name = "TIMESTAMP",
        conflicts_with = "replay",
        help_heading = "Rules"
    )]
    pub(super) at: Option<String>,
    /// Shows when the rules would have fired in a range; sends nothing and uses no state
    #[arg(long, conflicts_with = "state", help_heading = "Replay")]
    replay: bool,
    /// How far back: 24h, 7d, 30d [default: 7d]
    #[arg(
        long,
        value_name = "TIME",
        requires = "replay",
        conflicts_with = "from",
        help_heading = "Replay"
    )]
    since: Option<String>,
    /// The start, UTC: 2026-01-01T00:00:00Z
    #[arg(
        long,
        value_name = "TIMESTAMP",
        requires = "replay",
        help_heading = "Replay"
    )]
    from: Option<String>,
    /// The end, which is excluded [default: the last whole minute]
    #[arg(
        long,
        value_name = "TIMESTAMP",
        requires = "replay",
        help_heading = "Replay"
    )]
    to: Option<String>,
    #[command(flatten)]
    notify: NotifyFlags,
    #[command(flatten)]
    reading: Declared<Reading>,
    /// The format [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: CheckFormat,
    /// Writes to this file instead of stdout (-); an existing file is replaced atomically
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// The flags for reading history. The default patience is short, because a periodic job soon runs again.
#[derive(Clone, Debug)]
struct Reading;

impl Flags for Reading {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = &["concurrency", "finest", "settle_ms", "patience_ms"];
    const USUAL: &'static [(&'static str, &'static str)] = &[("patience_ms", "1m")];
    const HEADING: &'static str = "Reading";
}

/// The inputs of a check, the same for all clusters.
struct Job<'a> {
    app: &'a App,
    rules: &'a Rules,
    places: &'a Places,
    /// The flags for reading history.
    reading: &'a Given,
    /// The range to replay; `None` for a check.
    replay: Option<Window>,
    now: Timestamp,
    /// Whether `--at` set `now`.
    is_given: bool,
    /// The maximum number of clusters to check at the same time. Each of them holds a day of counts in memory.
    at_once: usize,
}

/// The maximum time from the timestamp that [`Job::first`] returns to now. The timestamp is a day after the last judged
/// window, so a run judges every window if the last run was at most eight days ago.
const LATEST_MS: i64 = 7 * DAY_MS;

/// The stored state of a cluster. The file stays locked during the check.
struct Kept {
    cluster: String,
    file: StateFile,
    memory: Memory,
}

/// Checks all clusters, writes the report, stores the states, and notifies the receivers.
///
/// # Errors
/// For flags, settings, rules and files that can't be used.
pub(crate) async fn run(app: &App, flags: &CheckFlags) -> Result<Exit> {
    let (replay, now) = (flags.range()?, flags.now()?);
    let settings = app.loaded()?;
    let places = places(
        (&flags.rules, &flags.state, &flags.history),
        &settings.check,
    );
    if let Some(output) = &flags.output {
        let own = places.rules.iter().chain([&places.state]);
        let same = |path: &&PathBuf| {
            let found = output.canonicalize().ok();
            found.is_some() && found == path.canonicalize().ok()
        };
        if let Some(path) = own.into_iter().find(same) {
            return Err(Failure::usage(format!(
                "--output {}: the check reads this file; want another",
                path.display()
            )));
        }
    }
    let rules = rules(places.rules.as_deref())?;
    let mut notifier = Notifier::new(&flags.notify, settings, &rules, &app.stderr)?;
    let job = Job {
        replay,
        now,
        is_given: flags.at.is_some(),
        at_once: usize::MAX,
        places: &places,
        rules: &rules,
        app,
        reading: &flags.reading.given,
    };
    let sessions = app.sessions()?;
    let mut kept = job.kept_of_all(&sessions)?;
    let found = job.find(&sessions, &kept).await;
    job.report(&found);
    // Write the report first, so that the user gets it even if storing the state fails.
    write(&found, flags.format, flags.output.as_deref())?;
    let failed = job.notify(&found, &mut kept, &mut notifier).await?;
    Ok(failed.unwrap_or_else(|| check::exit(&found)))
}

/// Checks the clusters with these names, or all clusters if `clusters` is empty. Stores no state and notifies nobody; only adds
/// to the history in `places`.
///
/// # Errors
/// As [`run`], and for a name that no cluster has.
pub(super) async fn look(
    app: &App,
    flags: &CheckFlags,
    places: &Places,
    clusters: &[String],
) -> Result<CheckReport> {
    let rules = rules(places.rules.as_deref())?;
    let job = Job {
        replay: flags.range()?,
        now: flags.now()?,
        is_given: flags.at.is_some(),
        at_once: usize::MAX,
        places,
        rules: &rules,
        app,
        reading: &flags.reading.given,
    };
    let sessions = app.sessions_of(clusters)?;
    let kept = job.kept_of_all(&sessions)?;
    Ok(job.find(&sessions, &kept).await)
}

/// The repeated checks of `tallyfold run`. They continue after a failure, and share the process with its other tasks.
pub(super) struct Checking<'a> {
    basis: Basis<'a>,
    notifier: Notifier,
    /// The interval of the checks, and how many milliseconds after the end of an interval each check begins.
    pace: (TimeStep, u64),
    /// Keys of what the last check reported, so that the next check does not report it again.
    reported: BTreeSet<[String; 3]>,
    checks: Rc<Checks>,
}

/// The inputs that all checks of a [`Checking`] share.
struct Basis<'a> {
    app: &'a App,
    places: Places,
    rules: Rules,
    reading: Given,
}

/// The outcomes of the checks of a process, for metrics.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The number of failed checks. A check fails if it can't read, judge, store or send something.
    pub(super) failures: Cell<u64>,
    /// Whether the last check failed; `None` until the first check has ended.
    pub(super) is_failing: Cell<Option<bool>>,
    /// When the last successful check ended; `None` before the first.
    pub(super) succeeded: Cell<Option<Instant>>,
    /// The number of firing incidents that are not silenced, by cluster and severity.
    pub(super) firing: RefCell<BTreeMap<(String, Severity), u64>>,
}

/// How many milliseconds later than a follow a check reads the same window, so that the follow reads it first.
const AFTER_MS: u64 = 1_000;

/// The maximum pause after a failed check.
const AGAIN: Duration = Duration::from_secs(60);

impl<'a> Checking<'a> {
    /// Reads the rules, and sets up the receivers. State and history are in `folder` unless the configuration names other
    /// places.
    ///
    /// # Errors
    /// For settings and rules that can't be used.
    pub(super) fn new(app: &'a App, folder: &Path, follow: &FollowFlags) -> Result<Self> {
        let settings = app.loaded()?;
        let places = places_below(&settings.check, folder);
        let rules = rules(places.rules.as_deref())?;
        let flags = NotifyFlags::naming(settings.run.notify.clone());
        let notifier = Notifier::new(&flags, settings, &rules, &app.stderr)?;
        let options = follow.options(None, unix_ms())?;
        let mut reading = Given::default();
        for (name, ms) in [("patience", 60_000), ("settle", options.settle_ms)] {
            reading.set(name, Raw::Text(duration(ms)), Origin::Flag);
        }
        let steps = rules.needs().into_iter().map(|need| need.window_s);
        let step = steps.chain([u64::from(options.window.seconds())]).min();
        Ok(Self {
            basis: Basis {
                app,
                places,
                rules,
                reading,
            },
            notifier,
            pace: (
                step.map_or(Ok(options.window), TimeStep::from_seconds)?,
                options.delay_ms.saturating_add(AFTER_MS),
            ),
            reported: BTreeSet::new(),
            checks: Rc::default(),
        })
    }

    /// Opens the state of each cluster and closes it again, so that errors are found before the first check. The incidents in
    /// these states were reported by an earlier process.
    ///
    /// # Errors
    /// For states that can't be used.
    pub(super) fn try_states(&mut self) -> Result<()> {
        let sessions = self.basis.app.sessions()?;
        for kept in self.basis.job()?.kept_of_all(&sessions)?.iter().flatten() {
            let incidents = kept.memory.rules.incidents();
            let keys = incidents.map(|incident| key_of(&kept.cluster, incident));
            self.reported.extend(keys);
        }
        Ok(())
    }

    /// Returns the outcomes of the checks. Each check updates them.
    pub(super) fn checks(&self) -> Rc<Checks> {
        Rc::clone(&self.checks)
    }

    /// Returns the dimensions by which the rules need counts of windows of this length, for each metric.
    pub(super) fn by(&self, step: TimeStep) -> Vec<(Metric, Vec<Dimension>)> {
        let needs = self.basis.rules.needs().into_iter();
        let needs = needs.filter(|need| need.window_s == u64::from(step.seconds()));
        needs.map(|need| (need.metric, need.dimensions)).collect()
    }

    /// Runs a check after each window, until the shutdown begins.
    pub(super) async fn run(&mut self, sessions: &[(Cluster, Rc<Session>)], shutdown: &Shutdown) {
        let mut before = None;
        while !shutdown.has_begun() {
            let checked = self.check(sessions, shutdown).await;
            let is_failing = !matches!(checked, Ok(true));
            let failure = checked.err().map(|failure| failure.to_string());
            if let Some(text) = failure.as_ref().filter(|_| failure != before) {
                let stderr = &self.basis.app.stderr;
                stderr.error(format_args!("check: {text}; it is tried again each minute"));
            }
            before = failure;
            let checks = &self.checks;
            checks.is_failing.set(Some(is_failing));
            match is_failing {
                true => checks.failures.set(checks.failures.get() + 1),
                false => checks.succeeded.set(Some(Instant::now())),
            }
            let (step, after_ms) = self.pace;
            let after_ms = i64::try_from(after_ms).unwrap_or(i64::MAX);
            let past_ms = (unix_ms() - after_ms).rem_euclid(i64::from(step.seconds()) * 1_000);
            let rest_ms = i64::from(step.seconds()) * 1_000 - past_ms;
            let pause = Duration::from_millis(rest_ms.unsigned_abs());
            let pause = match is_failing {
                true => pause.min(AGAIN),
                false => pause,
            };
            shutdown.unless_begun(sleep(pause)).await;
        }
    }

    /// Runs one check. Returns whether it read all windows and sent all messages. If the shutdown interrupts the check, returns
    /// true.
    async fn check(
        &mut self,
        sessions: &[(Cluster, Rc<Session>)],
        shutdown: &Shutdown,
    ) -> Result<bool> {
        let job = self.basis.job()?;
        let mut kept = job.kept_of_all(sessions)?;
        let Some(found) = shutdown.unless_begun(job.find(sessions, &kept)).await else {
            return Ok(true);
        };
        let firing = report_new(job.app, &found, &mut self.reported);
        self.checks.firing.replace(firing);
        let failed = job.notify(&found, &mut kept, &mut self.notifier).await;
        let is_whole = found.missing.is_empty()
            && (found.parts.iter()).all(|part| part.gaps.is_empty() && part.failure.is_none());
        Ok(is_whole && failed?.is_none())
    }
}

impl Basis<'_> {
    /// Returns the inputs of a check at the current time.
    fn job(&self) -> Result<Job<'_>> {
        Ok(Job {
            app: self.app,
            rules: &self.rules,
            places: &self.places,
            reading: &self.reading,
            replay: None,
            now: time_of(unix_ms())?,
            is_given: false,
            at_once: 1,
        })
    }
}

/// Writes what the last check did not report: failures, rules that can't be judged, and incidents with a new status or
/// severity. `last` has the keys of what the last check reported; they are replaced by the keys of this check. Returns the
/// number of firing incidents that are not silenced, by cluster and severity.
fn report_new(
    app: &App,
    found: &CheckReport,
    last: &mut BTreeSet<[String; 3]>,
) -> BTreeMap<(String, Severity), u64> {
    let (mut reported, mut firing) = (BTreeSet::new(), BTreeMap::new());
    let mut is_new = |what: [String; 3]| {
        let is_new = !last.contains(&what);
        reported.insert(what);
        is_new
    };
    let missing = found.missing.iter();
    let missing = missing.map(|one| (&one.cluster, &one.failure));
    let parts = found.parts.iter();
    let failures = parts.filter_map(|part| Some((&part.cluster, part.failure.as_ref()?)));
    for (cluster, failure) in missing.chain(failures) {
        if is_new([cluster.clone(), failure.text.clone(), String::new()]) {
            app.fail(cluster, failure);
        }
    }
    for part in &found.parts {
        for unjudged in part.found.unjudged() {
            let key = [
                part.cluster.clone(),
                unjudged.rule.clone(),
                "unjudged".to_owned(),
            ];
            if is_new(key) {
                let text = format_args!("{}: {}", unjudged.rule, unjudged.reason);
                app.warn(&part.cluster, text);
            }
        }
        let Verdict::Check(check) = &part.found else {
            continue;
        };
        for incident in &check.incidents {
            if incident.status == Status::Firing && !incident.silenced {
                let key = (part.cluster.clone(), incident.severity);
                *firing.entry(key).or_default() += 1;
            }
            let key = key_of(&part.cluster, incident);
            let state = key[2].clone();
            if is_new(key) {
                let (text, id) = (
                    escaped(&incident.sentence),
                    Incident::short_id(&incident.id),
                );
                let text = format_args!("{state}: {text} [incident {id}]");
                app.note(&part.cluster, text);
            }
        }
    }
    *last = reported;
    firing
}

/// Returns the key of an incident, which changes with its status and its severity.
fn key_of(cluster: &str, incident: &Incident) -> [String; 3] {
    let state = format!("{} {}", incident.status.as_str(), incident.severity);
    [cluster.to_owned(), incident.id.clone(), state]
}

/// Pairs the stored state of each cluster with its result. Skips clusters that have no state or no result.
fn both<'a>(
    kept: &'a mut [Option<Kept>],
    found: &'a CheckReport,
) -> impl Iterator<Item = (&'a mut Kept, &'a Part<Verdict>)> {
    kept.iter_mut().flatten().filter_map(|kept| {
        let part = found.parts.iter().find(|part| part.cluster == kept.cluster);
        Some((kept, part?))
    })
}

impl Kept {
    async fn store(&self) -> Result<()> {
        self.file.replace(self.memory.to_json()).await
    }
}

/// Returns the later of `now` and the clock's time as the time of the notifications. If `--at` has set `now` to a time in the
/// past, an alert with that time would expire before it is sent.
fn sent(now: Timestamp) -> Timestamp {
    let clock = Timestamp::from_unix_ms(unix_ms());
    clock.map_or(now, |clock| clock.max(now))
}

impl CheckFlags {
    fn now(&self) -> Result<Timestamp> {
        match &self.at {
            Some(at) => instant("--at", at, unix_ms()),
            None => time_of(unix_ms()),
        }
    }

    /// Returns the range to replay; `None` without `--replay`.
    fn range(&self) -> Result<Option<Window>> {
        if !self.replay {
            return Ok(None);
        }
        let range = RangeFlags {
            since: self.since.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
        };
        range.window_or("7d", unix_ms()).map(Some)
    }
}

impl Job<'_> {
    fn kept_of_all(&self, sessions: &[(Cluster, Rc<Session>)]) -> Result<Vec<Option<Kept>>> {
        let kept = sessions.iter();
        kept.map(|(cluster, session)| self.kept(cluster, session))
            .collect()
    }

    /// Stores the states, and notifies the receivers. Returns an exit code if a receiver did not accept a message.
    async fn notify(
        &self,
        found: &CheckReport,
        kept: &mut [Option<Kept>],
        notifier: &mut Notifier,
    ) -> Result<Option<Exit>> {
        // Store the state before sending anything. If the run is killed while it sends, the next run still knows the incidents.
        for (kept, part) in both(kept, found) {
            if let Verdict::Check(check) = &part.found {
                kept.memory.rules = check.state.clone();
            }
            kept.store().await?;
        }
        let (mut exit, sent) = (None, sent(self.now));
        for (kept, part) in both(kept, found) {
            let memory = &mut kept.memory;
            let failed = notifier.notify(self.app, part, sent, memory).await?;
            kept.store().await?;
            exit = failed.or(exit);
        }
        Ok(exit)
    }

    /// Opens the state that the last run left, and locks it against other processes. Returns `None` for a replay, which needs
    /// no state.
    fn kept(&self, cluster: &Cluster, session: &Session) -> Result<Option<Kept>> {
        if self.replay.is_some() {
            return Ok(None);
        }
        let file = StateFile::of_cluster(&self.places.state, &self.app.settings, cluster)?;
        let fingerprint = service(cluster)?;
        let identity = session.machine.identity().as_str();
        let memory = Memory::read(&file, identity.unwrap_or(&fingerprint), &fingerprint)?;
        if let Some(judged) = memory.rules.judged() {
            let past = check_past(judged, self.now.unix_ms());
            past.map_err(|error| match self.is_given {
                true => Failure::usage(format!(
                    "--at: the last check judged up to {judged}: want a later time, another --state, or --replay, which uses none"
                )),
                false => file.as_failure(error),
            })?;
        }
        let cluster = cluster.name.clone();
        Ok(Some(Kept {
            cluster,
            file,
            memory,
        }))
    }

    /// Checks all clusters, up to `at_once` of them at the same time.
    async fn find(
        &self,
        sessions: &[(Cluster, Rc<Session>)],
        kept: &[Option<Kept>],
    ) -> CheckReport {
        let bars = Bars::new(&self.app.stderr);
        let work = |cluster: Cluster, session: Rc<Session>| {
            let bar = bars.add(&cluster.name);
            let own = kept.iter().flatten();
            let own = own.filter(|kept| kept.cluster == cluster.name);
            let state = own.map(|kept| kept.memory.rules.clone()).next();
            let state = state.unwrap_or_default();
            async move { self.run(&cluster, &session, &state, &bar).await }
        };
        let (mut parts, mut missing) = (Vec::new(), Vec::new());
        for some in sessions.chunks(self.at_once) {
            let (found, failed) = each(some, work).await;
            parts.extend(found);
            missing.extend(failed);
        }
        bars.clear();
        Report {
            asked: Checked {
                at: self.replay.map_or(self.now, Window::end),
                replay: self.replay,
                rules: self.places.rules.clone(),
            },
            parts,
            missing,
            is_named: self.app.settings.is_named,
        }
    }

    async fn run(
        &self,
        cluster: &Cluster,
        session: &Rc<Session>,
        state: &State,
        bar: &ProgressBar,
    ) -> Result<Part<Verdict>> {
        let wanted = self.wanted(state)?;
        let recent = wanted.iter().map(Wanted::recent);
        let mut recent = Some(recent.collect::<Vec<_>>());
        if !self.begin(cluster, &wanted)? {
            recent = None;
        }
        loop {
            let own = recent.as_ref().unwrap_or(&wanted);
            let pasts = self.pasts((cluster, session), own, bar).await?;
            let Some(mut part) = self.part(&pasts, (cluster, session), state)? else {
                continue;
            };
            if recent.take().is_some() {
                self.report_recent(cluster, &part);
                continue;
            }
            for past in pasts.into_iter().flatten() {
                part.gaps.extend(past.gaps);
                part.failure = part.failure.or(past.failure);
                part.is_unanswered |= past.is_unanswered;
            }
            if part.failure.is_none() && !part.gaps.is_empty() {
                let text = format!(
                    "not judged: {}; these windows have not ended yet, or their counts could not be read",
                    spans(&part.gaps)
                );
                part.failure = Some(Failure::new(Exit::Missing, text));
            }
            return Ok(part);
        }
    }

    /// Opens a cluster's stored history of the counts that `wanted` describes.
    fn history(&self, cluster: &Cluster, wanted: &Wanted) -> Result<History> {
        let folder = match self.app.settings.is_named {
            true => self.places.history.join(file_name(&cluster.name, "")),
            false => self.places.history.clone(),
        };
        History::open(&folder, &service(cluster)?, wanted)
    }

    /// Reads the missing windows into the history of each endpoint. Returns the histories of event delivery and of ingestion;
    /// `None` for an endpoint that no rule needs.
    async fn pasts(
        &self,
        (cluster, session): (&Cluster, &Session),
        wanted: &[Wanted],
        bar: &ProgressBar,
    ) -> Result<[Option<Past>; 2]> {
        let mut pasts: [Option<Past>; 2] = [None, None];
        for wanted in wanted {
            let history = self.history(cluster, wanted)?;
            let past = read(session, (history, wanted, self.reading), |now| {
                show(bar, (now.planned, now.done, now.failed), now.waiting_ms);
            })
            .await?;
            let place = usize::from(wanted.metric == Metric::EventIngestion);
            pasts[place] = Some(past);
        }
        Ok(pasts)
    }

    /// Judges the counts. If a page is damaged, removes it and returns `None`; the caller then reads its windows again.
    fn part(
        &self,
        pasts: &[Option<Past>; 2],
        (cluster, session): (&Cluster, &Session),
        state: &State,
    ) -> Result<Option<Part<Verdict>>> {
        let pages = pasts
            .iter()
            .map(|past| past.as_ref().map(Past::pages).transpose());
        let pages = pages.collect::<Result<Vec<Option<Pages<'_>>>>>()?;
        let observed = ObservedPages {
            delivery: pages[0].as_ref(),
            ingestion: pages[1].as_ref(),
        };
        let judged = self.judge(&observed, state, self.now_of(session));
        for (past, pages) in pasts.iter().zip(&pages) {
            let failed = pages.as_ref().and_then(Pages::failed);
            if let Some((past, (page, _))) = past.as_ref().zip(failed) {
                past.remove(session, page)?;
                return Ok(None);
            }
        }
        let mut part = Part::of(cluster, judged?);
        if let Verdict::Check(check) = &mut part.found {
            for pages in pages.iter().flatten() {
                let found = contradicted(pages.reconciliation()).map(|reason| Unjudged {
                    rule: format!(
                        "reported totals of {}",
                        pages.metric().map_or("counts", Metric::as_str)
                    ),
                    reason: format!(
                        "{}: {reason}",
                        spans(&Window::joined(pages.windows().collect()))
                    ),
                });
                check.unjudged.extend(found);
            }
        }
        Ok(Some(part))
    }

    /// Returns the time of the check. If `--at` did not set it and the local clock is ahead of the service's, returns the
    /// service's time, because later windows have no counts yet.
    fn now_of(&self, session: &Session) -> Timestamp {
        match self.is_given {
            true => self.now,
            false => Timestamp::from_unix_ms(self.now.unix_ms().saturating_sub(session.ahead_ms()))
                .unwrap_or(self.now),
        }
    }

    fn judge(&self, pages: &ObservedPages<'_>, state: &State, now: Timestamp) -> Result<Verdict> {
        Ok(match self.replay {
            Some(range) => Verdict::Replay(self.rules.replay_pages(pages, range)?),
            None => Verdict::Check(self.rules.check_pages(pages, state, now)?),
        })
    }

    /// Returns the counts to read: the windows to judge, and the history before them that the rules compare with.
    fn wanted(&self, state: &State) -> Result<Vec<Wanted>> {
        let (first, last) = match self.replay {
            Some(range) => (range.start(), range.end()),
            None => (self.first(state), self.now),
        };
        let needs = self.rules.needs().into_iter().map(|need| {
            let step = tallyfold::TimeStep::from_seconds(need.window_s)?;
            let back_ms = i64::try_from(need.back_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
            let start = Timestamp::from_unix_ms(first.unix_ms().saturating_sub(back_ms));
            let start = step.floor(start.unwrap_or(first));
            let wanted = Wanted {
                range: Window::new(start, step.floor(last))?,
                dimensions: need.dimensions.clone(),
                metric: need.metric,
                sums: self.rules.sums(need.metric),
                step,
            };
            Ok(wanted.whole())
        });
        needs.collect()
    }

    /// Returns the timestamp from which [`Self::wanted`] looks back. The length of the history that the rules need includes a
    /// day of windows to judge. So a run within a day of the last one looks back from now, and a later run looks back from an
    /// earlier timestamp.
    fn first(&self, state: &State) -> Timestamp {
        let now_ms = self.now.unix_ms();
        let judged = state.judged().unwrap_or(self.now).unix_ms();
        let first = judged.saturating_add(DAY_MS).max(now_ms - LATEST_MS);
        Timestamp::from_unix_ms(first.min(now_ms)).unwrap_or(self.now)
    }

    /// Removes history that is too old. If many windows are missing, writes a note with the estimated duration. Returns whether
    /// to judge the last day first: true if nothing is stored yet, and reading all of the history takes much longer than
    /// reading the last day.
    fn begin(&self, cluster: &Cluster, wanted: &[Wanted]) -> Result<bool> {
        const MANY: u64 = 400;
        const EACH_MS: u64 = 250;
        const AT_ONCE: u64 = 8;
        const MUCH_LONGER: u64 = 4;
        let (mut windows, mut recent, mut is_new) = (0, 0, true);
        for wanted in wanted {
            let history = self.history(cluster, wanted)?;
            // A range from `--at` or `--replay` may begin later than the history that a normal run needs.
            if !self.is_given && self.replay.is_none() {
                history.drop_before(wanted.range.start())?;
            }
            let (lacking, is_empty) = history.lacks(wanted);
            windows += lacking;
            recent += history.lacks(&wanted.recent()).0;
            is_new &= is_empty;
        }
        if windows <= MANY {
            return Ok(false);
        }
        let minutes = (windows / AT_ONCE * EACH_MS).div_ceil(60_000);
        let text = format!(
            "reads {} windows of history, with a request for each: about {minutes} min if the service answers in {EACH_MS} ms. \
             Later runs read only what is new",
            grouped(windows)
        );
        self.app.note(&cluster.name, text);
        let is_long = windows > MUCH_LONGER * recent;
        Ok(is_new && is_long && self.replay.is_none())
    }

    /// Writes the incidents that the last day alone shows, before the run reads the rest of the history.
    fn report_recent(&self, cluster: &Cluster, part: &Part<Verdict>) {
        let Verdict::Check(check) = &part.found else {
            return;
        };
        let firing = check.incidents.iter();
        let firing = firing.filter(|incident| incident.status == Status::Firing);
        let sentences: Vec<String> = firing
            .map(|incident| {
                let severity = incident.severity.as_str();
                format!("{severity}: {}", escaped(&incident.sentence))
            })
            .collect();
        for sentence in &sentences {
            self.app
                .note(&cluster.name, format!("by the last day alone, {sentence}"));
        }
        if sentences.is_empty() {
            let text = "by the last day alone, nothing is wrong; most rules wait for the history";
            self.app.note(&cluster.name, text);
        }
    }

    /// Writes failures, and rules that could not be judged. If nothing is wrong and progress is shown, writes a note about
    /// that.
    fn report(&self, found: &CheckReport) {
        for missing in &found.missing {
            self.app.fail(&missing.cluster, &missing.failure);
        }
        for part in &found.parts {
            if let Some(failure) = &part.failure {
                self.app.fail(&part.cluster, failure);
            }
            if part.found.findings().is_empty() && self.app.stderr.shows_progress() {
                let judged = grouped(part.found.judged());
                let text = format_args!(
                    "nothing is wrong; {judged} windows were judged, counted for each group"
                );
                self.app.stderr.note(text);
            }
            for unjudged in part.found.unjudged() {
                let text = format_args!("{}: {}", unjudged.rule, unjudged.reason);
                self.app.warn(&part.cluster, text);
            }
        }
    }
}
