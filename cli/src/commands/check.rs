//! `tallyfold check`: applies rules to counts and their history, and reports what is wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use futures_util::future::join_all;
use indicatif::ProgressBar;
use tallyfold::keeper::check_past;
use tallyfold::text::{duration, grouped};
use tallyfold::{CollectOptions, Dimension, Metric, Progress, TimeStep, Timestamp, Window};
use tallyfold_health::{
    Check, Incident, ObservedPages, Pages, Rules, Severity, State, Status, Unjudged,
};
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::app::{App, Opened, each};
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::following::FollowFlags;
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::query::{DAY_MS, RangeFlags, time_of, timestamp};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};
use crate::files::file_name;
use crate::health::files::{Memory, Places, places, places_below, rules, service};
use crate::health::history::{History, Past, Wanted, read};
use crate::health::notify::{Notifier, NotifyFlags, receiver_flags};
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::Shutdown;
use crate::host::state::{Mark, StateFile};
use crate::output::check::{self, CheckFormat, CheckReport, Checked, write};
use crate::output::report::{Part, Report, contradiction, spans};
use crate::output::safe::escaped;
use crate::output::sink::check_output;
use crate::stderr::show;

pub(crate) mod hold;
pub(crate) mod receivers;

use hold::HoldAction;
use receivers::TestFlags;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold check
      A cron job: prints a sentence for each incident, and exits with 1 if something is wrong.
  tallyfold check --rules health.toml --alertmanager http://127.0.0.1:9093 --quiet
      Applies your rules, and notifies an Alertmanager of what fires and what is resolved.
  tallyfold check --rules health.toml --replay --since 30d
      Shows when these rules would have fired in the last month.
  tallyfold check ack 3f2a --note 'the vendor is on it'
      Later runs do not fail because of this incident, and send no messages about it, until it becomes more severe or comes back.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
The first run reads the history that the rules look back on: ten and a half weeks for the standard
rules, which may take some minutes. It judges the last day first. Later runs read only what is new.
If clusters have names, --state and --history are folders with files for each cluster.
A finding is pending until enough windows are bad; the rule's key `for` sets how many. It is
provisional until --settle has passed since the last of these windows ended. Then the command sends
an alert. Run the command every few minutes.
Exit codes: 0 if no warning or critical finding fires; 1 if one fires (pending, provisional,
acknowledged and silenced findings do not count); 2 for invalid flags, rules or files; 3 if the
service refuses the credentials; 4 if the service fails, or if a receiver does not accept a message;
5 for invalid responses; 6 if windows or clusters are missing, or if the rules can't judge whether a
finding is over. A file that can't be stored (2) or a message that can't be sent (4) takes
precedence over the other codes.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CheckFlags {
    /// The subcommand, if there is one.
    #[command(subcommand)]
    pub(crate) action: Option<CheckAction>,
    /// The file with the rules [default: as configured, or else health.toml here, or else the standard rules]
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    rules: Option<PathBuf>,
    /// Where to store the state for the next run [default: as configured, or next to the rules, such as health.state]
    #[arg(long, value_name = "PATH", help_heading = "Rules")]
    state: Option<PathBuf>,
    /// Where to store the counts that rules look back on [default: as configured, or next to the rules, such as health.history]
    #[arg(long, value_name = "FOLDER", help_heading = "Rules")]
    history: Option<PathBuf>,
    /// Checks as if it were this time, UTC: 2026-01-31T03:00:00Z
    ///
    /// If the time is in the future, the command reports the windows that have not ended as not judged, and exits with 6. Until
    /// that time has come, later runs refuse this --state.
    #[arg(long, value_name = "TIMESTAMP", conflicts_with = "replay", help_heading = "Rules")]
    pub(super) at: Option<String>,
    /// Shows when the rules would have fired in a range; sends no messages and uses no state
    #[arg(long, conflicts_with = "state", conflicts_with_all = receiver_flags(), help_heading = "Replay")]
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
    #[arg(long, value_name = "TIMESTAMP", requires = "replay", help_heading = "Replay")]
    from: Option<String>,
    /// The end, which is excluded [default: the last whole minute]
    #[arg(long, value_name = "TIMESTAMP", requires = "replay", help_heading = "Replay")]
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

/// The subcommands of `check`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CheckAction {
    #[command(flatten)]
    Hold(HoldAction),
    /// Sends a test message to receivers of alerts, and prints whether they accepted it
    #[command(before_help = receivers::EXAMPLES, after_help = receivers::ENDING)]
    TestReceivers(TestFlags),
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

/// The commands that show the last day while the history is being read.
const SOONER: &str = ". To see the last day now, run in another terminal: tallyfold delivery --since 24h --top 5, or \
     tallyfold explain --since 12h";

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
    /// Lets only one cluster at a time read many windows, because a cluster that reads holds a day of counts in memory. With
    /// `None`, all clusters may read at the same time.
    turns: Option<&'a Mutex<()>>,
    /// The state of the last check of `tallyfold run`, if it could not be stored.
    unstored: Option<&'a Unstored>,
}

/// A state that could not be stored, and the mark of the file that still contains the earlier state.
type Unstored = (Option<Mark>, Memory);

/// The maximum age of the timestamp that [`first`] returns. This timestamp is a day after the last judged window, so a run
/// judges every window if the last run was at most eight days ago.
const LONGEST_AGE_MS: i64 = 7 * DAY_MS;

/// The stored state of a cluster. The file stays locked during the check.
#[derive(Debug)]
struct Kept {
    file: StateFile,
    memory: Memory,
}

/// How a job notifies receivers of a cluster's findings, as soon as the cluster is judged.
struct Notifying<'a> {
    notifier: &'a Mutex<Notifier>,
    /// If this shutdown begins, the job leaves out the clusters that are not judged yet.
    shutdown: Option<&'a Shutdown>,
}

/// What could not be sent or stored.
#[derive(Default)]
struct Undone {
    /// The exit code, if a receiver did not accept a message. The notifier has already reported why.
    refused: Option<Exit>,
    /// The name of a cluster, and why its state or a page of its history could not be stored, or why its receivers could not
    /// be notified.
    unstored: Vec<(String, Failure)>,
    /// By cluster, a state that could not be stored.
    states: BTreeMap<String, Unstored>,
}

/// Checks all clusters, writes the report, stores the states, and notifies the receivers.
///
/// # Errors
/// For flags, settings, rules and files that can't be used.
pub(crate) async fn run(app: &App, flags: &CheckFlags) -> Result<Exit> {
    let (replay, now) = (flags.range()?, flags.now()?);
    let settings = app.loaded()?;
    let places = places((&flags.rules, &flags.state, &flags.history), &settings.check);
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
    let notifier = Notifier::new(&flags.notify, settings, &rules, &app.stderr)?;
    check_output(flags.output.as_deref())?;
    let job = Job {
        replay,
        now,
        is_given: flags.at.is_some(),
        turns: None,
        unstored: None,
        places: &places,
        rules: &rules,
        app,
        reading: &flags.reading.given,
    };
    let sessions = app.sessions_of(&[])?;
    let notifying = Notifying { notifier: &Mutex::new(notifier), shutdown: None };
    let (found, undone) = job.find(&sessions, Some(&notifying)).await;
    job.report(&found);
    let unstored = job.report_unstored(&found, &undone);
    write(&found, flags.format, flags.output.as_deref())?;
    let exit = unstored.or(undone.refused);
    Ok(exit.unwrap_or_else(|| check::exit(&found)))
}

/// Checks the clusters with these names, or all clusters if `clusters` is empty. Adds to the history in `places`, but stores no
/// state and notifies nobody.
///
/// # Errors
/// Same as [`run`], and for a name that no cluster has.
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
        turns: None,
        unstored: None,
        places,
        rules: &rules,
        app,
        reading: &flags.reading.given,
    };
    let sessions = app.sessions_of(clusters)?;
    Ok(job.find(&sessions, None).await.0)
}

/// The repeated checks of `tallyfold run`. Each cluster has checks of its own, which continue after a failure.
pub(super) struct Checking<'a> {
    basis: Basis<'a>,
    notifier: Mutex<Notifier>,
    /// The interval of the checks, and how many milliseconds after the end of an interval each check begins.
    pace: (TimeStep, u64),
    /// By cluster, the keys of the incidents that an earlier process reported.
    reported: BTreeMap<String, Reported>,
    checks: Rc<Checks>,
}

/// The keys of everything that the last check of a cluster reported. The next check does not report it again.
type Reported = BTreeSet<[String; 2]>;

/// What the next check of a cluster needs from the last one.
struct Left {
    reported: Reported,
    state: Option<Unstored>,
}

/// The inputs that all checks of a [`Checking`] share.
struct Basis<'a> {
    app: &'a App,
    places: Places,
    rules: Rules,
    reading: Given,
    turns: Mutex<()>,
}

/// The outcomes of all checks of this process, for metrics.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The number of failed checks. A check fails if it can't read, judge, store or send something.
    pub(super) failures: Cell<u64>,
    clusters: RefCell<BTreeMap<String, Outcome>>,
}

/// The outcomes of one cluster's checks.
#[derive(Debug)]
struct Outcome {
    /// Whether the last check failed; `None` until the first check has ended.
    is_failing: Option<bool>,
    /// When the last successful check ended; before the first, when the checks began.
    succeeded: Instant,
    /// The number of firing incidents that are neither acknowledged nor silenced, by severity, in the last check that could judge
    /// the cluster, or in the stored state before the first check.
    firing: BTreeMap<Severity, u64>,
}

impl Checks {
    /// Returns whether the last check of any cluster failed. Returns `None` if none failed and the first check of a cluster
    /// has not ended yet.
    pub(super) fn is_failing(&self) -> Option<bool> {
        let clusters = self.clusters.borrow();
        let failing: Vec<_> = clusters.values().map(|one| one.is_failing).collect();
        match failing.contains(&Some(true)) {
            true => Some(true),
            false if failing.is_empty() || failing.contains(&None) => None,
            false => Some(false),
        }
    }

    /// Returns when the last successful check of a cluster ended, for the cluster where this was the longest time ago. For a
    /// cluster without a successful check, the time at which its checks began counts.
    pub(super) fn succeeded(&self) -> Option<Instant> {
        let clusters = self.clusters.borrow();
        clusters.values().map(|outcome| outcome.succeeded).min()
    }

    /// Counts the firing incidents of each cluster that was judged. The numbers of the other clusters stay the same.
    fn note_incidents(&self, found: &CheckReport) {
        for part in &found.parts {
            self.update(&part.cluster, |outcome| {
                outcome.firing = firing(part.found.incidents.iter());
            });
        }
    }

    fn update(&self, cluster: &str, set: impl FnOnce(&mut Outcome)) {
        if let Some(outcome) = self.clusters.borrow_mut().get_mut(cluster) {
            set(outcome);
        }
    }

    /// Returns the numbers of firing incidents that are neither acknowledged nor silenced, by cluster and severity.
    pub(super) fn firing(&self) -> Vec<(String, Severity, u64)> {
        let clusters = self.clusters.borrow();
        let firing = clusters.iter().flat_map(|(cluster, outcome)| {
            let firing = outcome.firing.iter();
            firing.map(|(severity, count)| (cluster.clone(), *severity, *count))
        });
        firing.collect()
    }
}

/// A check reads a window this many milliseconds later than a follow does, so that the follow reads it first.
const AFTER_MS: u64 = 1_000;

/// If the local clock is ahead of the service's by more than this many milliseconds, a check begins again with the service's
/// time.
const AHEAD_MS: i64 = 60_000;

/// The maximum number of windows that a cluster reads without a turn ([`Job::turns`]).
const FEW_WINDOWS: u64 = 16;

/// The maximum pause after a failed check.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

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
            basis: Basis { app, places, rules, reading, turns: Mutex::default() },
            notifier: Mutex::new(notifier),
            pace: (
                step.map_or(Ok(options.window), TimeStep::from_seconds)?,
                options.delay_ms.saturating_add(AFTER_MS),
            ),
            reported: BTreeMap::new(),
            checks: Rc::default(),
        })
    }

    /// Opens the state of each cluster and closes it again, so that errors are found before the first check. Until that check
    /// has ended, the metrics count the incidents in these states. The first check does not report these incidents again.
    ///
    /// # Errors
    /// For states that can't be used.
    pub(super) fn try_states(&mut self) -> Result<()> {
        let job = self.basis.job(None)?;
        let mut clusters = BTreeMap::new();
        for (cluster, session) in self.basis.app.sessions()? {
            let state = job.kept(&cluster, &session)?.memory.rules;
            let outcome = Outcome {
                is_failing: None,
                succeeded: Instant::now(),
                firing: firing(state.incidents().filter(|one| !one.is_held(job.now))),
            };
            clusters.insert(cluster.name.clone(), outcome);
            let reported = state.incidents().map(key_of).collect();
            self.reported.insert(cluster.name, reported);
        }
        self.checks.clusters.replace(clusters);
        Ok(())
    }

    /// Returns the outcomes of the checks. Each check updates them.
    pub(super) fn checks(&self) -> Rc<Checks> {
        Rc::clone(&self.checks)
    }

    /// For each metric, returns the dimensions that the rules need for windows of this length.
    pub(super) fn by(&self, step: TimeStep) -> Vec<(Metric, Vec<Dimension>)> {
        let needs = self.basis.rules.needs().into_iter();
        let needs = needs.filter(|need| need.window_s == u64::from(step.seconds()));
        needs.map(|need| (need.metric, need.dimensions)).collect()
    }

    /// Checks each cluster after each window, until the shutdown begins. No cluster waits for another one, except to read many
    /// windows.
    pub(super) async fn run(&self, sessions: &[Opened], shutdown: &Shutdown) {
        let each = sessions.chunks(1).map(|own| self.repeat(own, shutdown));
        join_all(each).await;
    }

    /// Checks the only cluster in `own` after each window, until the shutdown begins.
    async fn repeat(&self, own: &[Opened], shutdown: &Shutdown) {
        let Some((cluster, _)) = own.first() else {
            return;
        };
        let reported = self.reported.get(&cluster.name).cloned();
        let mut left = Left { reported: reported.unwrap_or_default(), state: None };
        let mut before = None;
        while !shutdown.has_begun() {
            let checked = self.check((cluster, own), &mut left, shutdown).await;
            let is_failing = !matches!(checked, Ok(true));
            let failure = checked.err().map(|failure| failure.to_string());
            if let Some(text) = failure.as_ref().filter(|_| failure != before) {
                let stderr = &self.basis.app.stderr;
                stderr.error(format_args!("check: {text}; retrying each minute"));
            }
            before = failure;
            self.checks.update(&cluster.name, |outcome| {
                outcome.is_failing = Some(is_failing);
                if !is_failing {
                    outcome.succeeded = Instant::now();
                }
            });
            if is_failing {
                self.checks.failures.set(self.checks.failures.get() + 1);
            }
            let (step, after_ms) = self.pace;
            let after_ms = i64::try_from(after_ms).unwrap_or(i64::MAX);
            let step_ms = i64::from(step.seconds()) * 1_000;
            let past_ms = (unix_ms() - after_ms).rem_euclid(step_ms);
            let pause = Duration::from_millis((step_ms - past_ms).unsigned_abs());
            let pause = match is_failing {
                true => pause.min(RETRY_PAUSE),
                false => pause,
            };
            shutdown.unless_begun(sleep(pause)).await;
        }
    }

    /// Runs one check of a cluster. Returns whether it read all windows and sent all messages. If the shutdown interrupts the
    /// check, returns true.
    async fn check(
        &self,
        (cluster, own): (&Cluster, &[Opened]),
        left: &mut Left,
        shutdown: &Shutdown,
    ) -> Result<bool> {
        let job = self.basis.job(left.state.as_ref())?;
        let notifying = Notifying { notifier: &self.notifier, shutdown: Some(shutdown) };
        let (found, mut undone) = job.find(own, Some(&notifying)).await;
        report_new(job.app, &found, &mut left.reported);
        self.checks.note_incidents(&found);
        if shutdown.has_begun() {
            return Ok(true);
        }
        let state = undone.states.remove(&cluster.name);
        if state.is_some() || found.missing.is_empty() {
            left.state = state;
        }
        if let Some((_, failure)) = undone.unstored.into_iter().next() {
            return Err(failure);
        }
        let is_whole = found.missing.is_empty()
            && (found.parts.iter()).all(|part| part.gaps.is_empty() && part.failure.is_none());
        Ok(is_whole && undone.refused.is_none())
    }
}

impl Basis<'_> {
    /// Returns the inputs of a check at the current time.
    fn job<'a>(&'a self, unstored: Option<&'a Unstored>) -> Result<Job<'a>> {
        Ok(Job {
            app: self.app,
            rules: &self.rules,
            places: &self.places,
            reading: &self.reading,
            replay: None,
            now: time_of(unix_ms())?,
            is_given: false,
            turns: Some(&self.turns),
            unstored,
        })
    }
}

/// Reports what is new since the cluster's last check: failures, rules that can't be judged, and incidents with a new status or
/// severity. `last` contains the keys of what that check reported, and gets the keys of the current check.
fn report_new(app: &App, found: &CheckReport, last: &mut Reported) {
    let mut reported = Reported::new();
    if found.parts.is_empty() {
        // Nothing was judged, so the incidents and the rules that can't be judged stay as last reported.
        let is_of_failure = |[_, state]: &&[String; 2]| state.is_empty();
        reported.extend(last.iter().filter(|key| !is_of_failure(key)).cloned());
    }
    let mut is_new = |what: [String; 2]| {
        let is_new = !last.contains(&what);
        reported.insert(what);
        is_new
    };
    let missing = found.missing.iter();
    let missing = missing.map(|one| (&one.cluster, &one.failure));
    let parts = found.parts.iter();
    let failures = parts.filter_map(|part| Some((&part.cluster, part.failure.as_ref()?)));
    for (cluster, failure) in missing.chain(failures) {
        if is_new([failure.text.clone(), String::new()]) {
            app.fail(cluster, failure);
        }
    }
    for part in &found.parts {
        for unjudged in &part.found.unjudged {
            if is_new([unjudged.rule.clone(), "unjudged".to_owned()]) {
                let text = format_args!("{}: {}", unjudged.rule, unjudged.reason);
                app.warn(&part.cluster, text);
            }
        }
        for incident in &part.found.incidents {
            let key = key_of(incident);
            let state = key[1].clone();
            if is_new(key) {
                let (text, id) = (escaped(&incident.sentence), Incident::short_id(&incident.id));
                let text = format_args!("{state}: {text} [incident {id}]");
                app.note(&part.cluster, text);
            }
        }
    }
    *last = reported;
}

/// Returns the number of firing incidents that are neither acknowledged nor silenced, by severity.
fn firing<'a>(incidents: impl Iterator<Item = &'a Incident>) -> BTreeMap<Severity, u64> {
    let mut firing = BTreeMap::new();
    for incident in incidents {
        if incident.status == Status::Firing && !incident.silenced {
            *firing.entry(incident.severity).or_default() += 1;
        }
    }
    firing
}

/// Returns the key of an incident. The key changes with the incident's status and severity.
fn key_of(incident: &Incident) -> [String; 2] {
    let state = format!("{} {}", incident.status.as_str(), incident.severity);
    [incident.id.clone(), state]
}

impl Undone {
    fn add(&mut self, other: Self) {
        self.refused = self.refused.or(other.refused);
        self.unstored.extend(other.unstored);
        self.states.extend(other.states);
    }
}

impl Kept {
    async fn store(&self) -> Result<()> {
        self.file.replace(self.memory.to_json()).await
    }
}

/// Returns the later of `now` and the clock's time as the time of the notifications. If `--at` has set `now` to a time in the
/// past, an alert with that time would expire before it is sent.
fn time_of_messages(now: Timestamp) -> Timestamp {
    let clock = Timestamp::from_unix_ms(unix_ms());
    clock.map_or(now, |clock| clock.max(now))
}

/// Returns the timestamp from which [`Job::wanted`] looks back. The history that the rules need already includes a day of windows
/// to judge, so a run within a day of the last run looks back from now. A later run looks back from a day after the last judged
/// window, so that it judges all windows since then.
fn first(state: &State, now: Timestamp) -> Timestamp {
    let judged = state.judged().unwrap_or(now).unix_ms();
    let first = judged.saturating_add(DAY_MS).max(now.unix_ms() - LONGEST_AGE_MS);
    Timestamp::from_unix_ms(first.min(now.unix_ms())).unwrap_or(now)
}

impl CheckFlags {
    fn now(&self) -> Result<Timestamp> {
        match &self.at {
            Some(at) => timestamp("--at", at, unix_ms()),
            None => time_of(unix_ms()),
        }
    }

    /// Returns the range to replay; `None` without `--replay`.
    fn range(&self) -> Result<Option<Window>> {
        if !self.replay {
            return Ok(None);
        }
        let range =
            RangeFlags { since: self.since.clone(), from: self.from.clone(), to: self.to.clone() };
        range.window_or("7d", unix_ms()).map(Some)
    }
}

impl Job<'_> {
    /// Stores the state of a cluster, and notifies the receivers of the findings. If the state can't be stored, notifies them
    /// anyway, unless another process uses the state.
    async fn notify(
        &self,
        part: &Part<Check>,
        mut kept: Kept,
        notifier: &Mutex<Notifier>,
    ) -> Undone {
        let mut undone = Undone::default();
        let cluster = part.cluster.clone();
        kept.memory.rules = part.found.state.clone();
        // Store the state before sending messages. If the run is killed while it sends them, the next run still knows the open
        // incidents and the alerts whose end was not sent.
        let stored = kept.store().await;
        if let Err(failure) = stored
            && failure.io == Some(ErrorKind::WouldBlock)
        {
            // Another process writes this state. That process notifies the receivers.
            undone.unstored.push((cluster, failure));
            return undone;
        }
        let (at, mut notifier) = (time_of_messages(self.now), notifier.lock().await);
        match notifier.notify(self.app, part, at, &mut kept.memory).await {
            Ok(refused) => undone.refused = refused,
            Err(failure) => {
                undone.unstored.push((cluster, failure));
                return undone;
            }
        }
        if let Err(failure) = kept.store().await {
            undone.unstored.push((cluster.clone(), failure));
            let state = (kept.file.seen(), kept.memory);
            undone.states.insert(cluster, state);
        }
        undone
    }

    /// Opens the state that the last run stored, and locks it against other processes. If there is a newer state that could not
    /// be stored, returns that one, unless the file has changed since then: somebody may have acknowledged an incident.
    fn kept(&self, cluster: &Cluster, session: &Session) -> Result<Kept> {
        let file = StateFile::of_cluster(&self.places.state, &self.app.settings, cluster)?;
        let fingerprint = service(cluster)?;
        let identity = session.machine.identity().as_str();
        let mut memory = Memory::read(&file, identity.unwrap_or(&fingerprint), &fingerprint)?;
        if let Some(judged) = memory.rules.judged() {
            let past = check_past(judged, self.now.unix_ms());
            past.map_err(|error| match self.is_given {
                true => Failure::usage(format!(
                    "--at: the last check judged up to {judged}: want a later time, another --state, or --replay, which uses none"
                )),
                false => file.as_failure(error),
            })?;
        }
        if let Some((_, unstored)) = self.unstored.filter(|(mark, _)| *mark == file.seen()) {
            memory.clone_from(unstored);
        }
        Ok(Kept { file, memory })
    }

    /// Checks all clusters at the same time. Notifies the receivers as soon as a cluster is judged, so that a cluster that does
    /// not answer does not delay the alerts about others. The report lists a cluster as missing if the check has no result for
    /// it, for example because its state or its secret can't be used.
    async fn find(
        &self,
        sessions: &[Opened],
        notifying: Option<&Notifying<'_>>,
    ) -> (CheckReport, Undone) {
        let all = RefCell::new(Undone::default());
        let work = |cluster: Cluster, session: Rc<Session>| {
            let bar = self.app.stderr.bar(&cluster.name);
            let all = &all;
            async move {
                let own = match self.replay {
                    None => Some(self.kept(&cluster, &session)?),
                    // A replay needs no state.
                    Some(_) => None,
                };
                let state = own.as_ref().map(|kept| kept.memory.rules.clone());
                let state = state.unwrap_or_default();
                let judged = self.run((&cluster, &session), &state, all, &bar);
                let judged = match notifying.and_then(|notifying| notifying.shutdown) {
                    Some(shutdown) => shutdown.unless_begun(judged).await,
                    None => Some(judged.await),
                };
                let part = judged.transpose()?;
                if let (Some(part), Some(kept), Some(notifying)) = (&part, own, notifying) {
                    let undone = self.notify(part, kept, notifying.notifier).await;
                    all.borrow_mut().add(undone);
                }
                Ok(part)
            }
        };
        let (parts, missing) = each(sessions, work).await;
        let report = Report {
            asked: Checked {
                at: self.replay.map_or(self.now, Window::end),
                replay: self.replay,
                rules: self.places.rules.clone(),
            },
            parts: parts.into_iter().flatten().collect(),
            missing,
            is_named: self.app.settings.is_named,
        };
        (report, all.into_inner())
    }

    /// Reads the counts of a cluster, and judges them. Adds what could not be stored to `undone`.
    async fn run(
        &self,
        (cluster, session): (&Cluster, &Rc<Session>),
        state: &State,
        undone: &RefCell<Undone>,
        bar: &ProgressBar,
    ) -> Result<Part<Check>> {
        let mut now = self.now_of(session);
        let mut wanted = self.wanted(state, now)?;
        let (lacking, is_long) = self.begin(cluster, &wanted)?;
        let mut recent = is_long.then(|| wanted.iter().map(Wanted::recent).collect::<Vec<_>>());
        let mut turn = match self.turns.filter(|_| lacking > FEW_WINDOWS) {
            Some(turns) => Some(turns.lock().await),
            None => None,
        };
        loop {
            let own = recent.as_ref().unwrap_or(&wanted);
            let pasts = self.pasts((cluster, session), own, |now| {
                show(bar, now);
                if now.waiting_ms.is_some() {
                    // While the service does not answer, give the turn to another cluster.
                    turn.take();
                }
            });
            let pasts = pasts.await?;
            // The first response may have shown that the local clock is ahead. Windows that have not ended have no counts, and
            // rules look back from the service's time.
            let ahead_ms = now.unix_ms() - self.now_of(session).unix_ms();
            if ahead_ms > AHEAD_MS {
                now = self.now_of(session);
                wanted = self.wanted(state, now)?;
                recent = None;
                continue;
            }
            let Some(mut part) = self.part(&pasts, (cluster, session), state)? else {
                continue;
            };
            if recent.take().is_some() {
                self.report_recent(cluster, &part);
                continue;
            }
            for past in pasts.into_iter().flatten() {
                // If the service has not answered, the local clock may be ahead, and `remove_older` would remove too much. A
                // range from `--at` or `--replay` may begin later than the history that a normal run needs.
                if past.failure.is_none() && !self.is_given && self.replay.is_none() {
                    past.remove_older()?;
                }
                part.gaps.extend(past.gaps);
                part.failure = part.failure.or(past.failure);
                let unstored = past.unstored.map(|failure| (cluster.name.clone(), failure));
                undone.borrow_mut().unstored.extend(unstored);
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
        mut on_progress: impl FnMut(Progress),
    ) -> Result<[Option<Past>; 2]> {
        let mut pasts: [Option<Past>; 2] = [None, None];
        for wanted in wanted {
            let history = self.history(cluster, wanted)?;
            let keeps_all = self.replay.is_some();
            let inputs = (history, wanted, self.reading);
            let past = read(session, inputs, keeps_all, &mut on_progress).await?;
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
    ) -> Result<Option<Part<Check>>> {
        let pages = pasts.iter().map(|past| past.as_ref().map(Past::pages).transpose());
        let pages = pages.collect::<Result<Vec<Option<Pages<'_>>>>>()?;
        let observed = ObservedPages { delivery: pages[0].as_ref(), ingestion: pages[1].as_ref() };
        let judged = self.judge(&observed, state, self.now_of(session));
        for (past, pages) in pasts.iter().zip(&pages) {
            let failed = pages.as_ref().and_then(Pages::failed);
            if let Some((past, (page, _))) = past.as_ref().zip(failed) {
                past.remove(session, page)?;
                return Ok(None);
            }
        }
        let mut part = Part::of(cluster, judged?);
        if self.replay.is_none() {
            for pages in pages.iter().flatten() {
                let found = contradiction(pages.reconciliation()).map(|reason| Unjudged {
                    rule: format!(
                        "reported totals of {}",
                        pages.metric().map_or("counts", Metric::as_str)
                    ),
                    reason: format!(
                        "{}: {reason}",
                        spans(&Window::joined(pages.windows().collect()))
                    ),
                });
                part.found.unjudged.extend(found);
            }
        }
        Ok(Some(part))
    }

    /// Returns the time of the check: the time that `--at` has set, or else the current time. If the local clock is ahead of
    /// the service's, the current time is the service's, because later windows have no counts yet.
    fn now_of(&self, session: &Session) -> Timestamp {
        match self.is_given {
            true => self.now,
            false => Timestamp::from_unix_ms(self.now.unix_ms().saturating_sub(session.ahead_ms()))
                .unwrap_or(self.now),
        }
    }

    /// Applies the rules. A replay is always healthy, because its findings are in the past, and leaves no state.
    fn judge(&self, pages: &ObservedPages<'_>, state: &State, now: Timestamp) -> Result<Check> {
        let Some(range) = self.replay else {
            return Ok(self.rules.check_pages(pages, state, now)?);
        };
        let replay = self.rules.replay_pages(pages, range)?;
        Ok(Check {
            findings: replay.findings,
            incidents: replay.incidents,
            judged: replay.judged,
            healthy: true,
            unjudged: replay.unjudged,
            left_out: replay.left_out,
            state: State::default(),
        })
    }

    /// Returns the counts to read: the windows to judge, and the history before them that the rules compare with.
    fn wanted(&self, state: &State, now: Timestamp) -> Result<Vec<Wanted>> {
        let (first, last) = match self.replay {
            Some(range) => (range.start(), range.end()),
            None => (first(state, now), now),
        };
        let needs = self.rules.needs().into_iter().map(|need| {
            let step = TimeStep::from_seconds(need.window_s)?;
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

    /// If many windows are missing, writes a note with the estimated duration. Returns how many windows are missing, and
    /// whether to judge the last day first. Judging it first is useful if nothing is stored yet, and reading the whole
    /// history takes much longer than reading the last day.
    fn begin(&self, cluster: &Cluster, wanted: &[Wanted]) -> Result<(u64, bool)> {
        const MANY: u64 = 400;
        const EACH_MS: u64 = 250;
        const AT_ONCE: u64 = 8;
        const MUCH_LONGER: u64 = 4;
        let (mut windows, mut recent, mut is_new) = (0, 0, true);
        for wanted in wanted {
            let history = self.history(cluster, wanted)?;
            let (lacking, is_empty) = history.lacks(wanted);
            windows += lacking;
            recent += history.lacks(&wanted.recent()).0;
            is_new &= is_empty;
        }
        if windows <= MANY {
            return Ok((windows, false));
        }
        let minutes = (windows / AT_ONCE * EACH_MS).div_ceil(60_000);
        let mut text = format!(
            "reads {} windows of history, with a request for each: about {minutes} min if the service answers in {EACH_MS} ms. \
             Later runs read only what is new",
            grouped(windows)
        );
        if minutes > 1 {
            text.push_str(SOONER);
        }
        self.app.note(&cluster.name, text);
        let is_long = windows > MUCH_LONGER * recent;
        Ok((windows, is_new && is_long && self.replay.is_none()))
    }

    /// Writes the incidents that the last day alone shows, before the run reads the rest of the history.
    fn report_recent(&self, cluster: &Cluster, part: &Part<Check>) {
        let is_firing = |one: &&Incident| one.status == Status::Firing && !one.silenced;
        let firing: Vec<_> = part.found.incidents.iter().filter(is_firing).collect();
        if firing.is_empty() {
            let text = "preliminary: the last day alone shows no incident, but most rules can't judge before the history is read";
            self.app.note(&cluster.name, text);
        }
        for incident in firing {
            let sentence = escaped(&incident.sentence);
            let text = format_args!("preliminary, by the last day alone: {sentence}");
            self.app.note(&cluster.name, text);
        }
    }

    /// Writes why states and pages could not be stored, and why receivers could not be notified. Returns the exit code of the
    /// first failure; a replay needs no stored pages, so it does not fail.
    fn report_unstored(&self, found: &CheckReport, undone: &Undone) -> Option<Exit> {
        for (cluster, failure) in &undone.unstored {
            let part = found.parts.iter().find(|part| part.cluster == *cluster);
            let reported = part.and_then(|part| part.failure.as_ref());
            if self.replay.is_some() {
                self.app.warn(cluster, failure);
            } else if reported.is_none_or(|reported| reported.io.is_none()) {
                self.app.fail(cluster, failure);
            }
        }
        let first = undone.unstored.first().filter(|_| self.replay.is_none());
        first.map(|(_, failure)| failure.exit)
    }

    /// Writes failures, and rules that could not be judged. If progress is shown, also writes a note for each cluster where
    /// nothing failed, all rules were judged, and nothing was found.
    fn report(&self, found: &CheckReport) {
        for missing in &found.missing {
            self.app.fail(&missing.cluster, &missing.failure);
        }
        for part in &found.parts {
            if let Some(failure) = &part.failure {
                self.app.fail(&part.cluster, failure);
            }
            let is_fine = part.failure.is_none()
                && part.found.findings.is_empty()
                && part.found.unjudged.is_empty();
            if is_fine && self.app.stderr.shows_progress() {
                let judged = match part.found.judged {
                    1 => "1 window was".to_owned(),
                    judged => format!("{} windows were", grouped(judged)),
                };
                let text =
                    format_args!("nothing is wrong; {judged} judged, counted for each group");
                self.app.note(&part.cluster, text);
            }
            for unjudged in &part.found.unjudged {
                let text = format_args!("{}: {}", unjudged.rule, unjudged.reason);
                self.app.warn(&part.cluster, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::load::ServiceFlags;
    use crate::output::report::Missing;
    use crate::stderr::Stderr;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        service: ServiceFlags,
    }

    fn incident() -> Incident {
        let at = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        Incident {
            id: "0123456789abcdef".to_owned(),
            severity: Severity::Critical,
            status: Status::Firing,
            since: at,
            fired: at,
            until: at,
            headline: String::new(),
            sentence: "much fails".to_owned(),
            silenced: false,
            provisional: false,
            missed: false,
            hold: None,
            parts: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Returns the report of a check: with the incident or, if there is a failure, without any result.
    fn report(failure: Option<&str>) -> CheckReport {
        let cluster = Cluster { name: "eu".to_owned(), ..Cluster::default() };
        let check = Check {
            findings: Vec::new(),
            incidents: vec![incident()],
            judged: 1,
            healthy: false,
            unjudged: Vec::new(),
            left_out: 0,
            state: State::default(),
        };
        let missing = failure.map(|text| Missing {
            cluster: cluster.name.clone(),
            labels: Vec::new(),
            failure: Failure::new(Exit::Service, text),
        });
        Report {
            asked: Checked {
                at: Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
                replay: None,
                rules: None,
            },
            parts: match missing {
                Some(_) => Vec::new(),
                None => vec![Part::of(&cluster, check)],
            },
            missing: missing.into_iter().collect(),
            is_named: true,
        }
    }

    #[tokio::test]
    async fn a_failed_check_forgets_no_incident() {
        let flags = Line::parse_from(["test"]).service;
        let app = App::new(&flags, &Rc::new(Stderr::new(true, false))).unwrap();
        let checks = Checks::default();
        let outcome =
            Outcome { is_failing: None, succeeded: Instant::now(), firing: BTreeMap::new() };
        checks.clusters.replace([("eu".to_owned(), outcome)].into());
        let mut reported = Reported::new();
        let fires = key_of(&incident());
        let failed = |text: &str| [text.to_owned(), String::new()];
        for (failure, expected) in [
            (None, Reported::from([fires.clone()])),
            (Some("down"), [failed("down"), fires.clone()].into()),
            (Some("gone"), [failed("gone"), fires.clone()].into()),
            (None, [fires.clone()].into()),
        ] {
            let found = report(failure);
            report_new(&app, &found, &mut reported);
            checks.note_incidents(&found);
            assert_eq!(reported, expected);
            let firing = checks.firing();
            assert_eq!(firing, [("eu".to_owned(), Severity::Critical, 1)]);
        }
    }
}
