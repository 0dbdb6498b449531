//! `tallyfold push`: sends counts to another system.

use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use futures_util::future::join_all;
use serde::Serialize;
use tallyfold::{CollectOptions, Keep};
use tallyfold_export::{Export, Labels, Outbox, Push, PushReport};

use crate::app::App;
use crate::arguments::declared::{Suggested, with_paragraph};
use crate::arguments::following::FollowFlags;
use crate::arguments::query::{Query, QueryFlags, conditions, length};
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Failure, Result};
use crate::host::carry::Carried;
use crate::host::ranges::read;
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::host::state::StateFile;
use crate::output::documented::write_document;
use crate::output::sink::write_to;
use crate::stderr::Stderr;

pub(crate) mod destination;
pub(crate) mod follow;
mod totals;

use destination::{Destination, DestinationFlags};
use follow::Plan;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold push --to remote-write http://127.0.0.1:9090/api/v1/write --since 24h
      Sends the settled windows of the last day once.
  tallyfold push --to otlp https://otlp.example/v1/metrics --header-env authorization=OTLP_TOKEN --follow --state otlp.json
      Sends each window when it has ended, and later corrections. When started again, the command resumes where it stopped.
  tallyfold push --to otlp http://127.0.0.1:9090/api/v1/otlp/v1/metrics --follow --cumulative --state totals.json
      Sends running totals of settled windows, for OTLP destinations that refuse deltas, such as Prometheus.
  tallyfold push grafana --follow --state /var/lib/tallyfold
      Sends to the destination in the section [push.grafana] of the configuration.
";

/// How far back a push without `--follow` reads by default.
const USUAL_SINCE: &str = "24h";

/// A paragraph about `--since` for this command's help.
const SINCE: &str = "Without --follow, the default is 24h.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("since", |arg| with_paragraph(arg, SINCE)))]
pub(crate) struct PushCommand {
    /// The subcommand, if there is one.
    #[command(subcommand)]
    pub(crate) action: Option<PushAction>,
    #[command(flatten)]
    destination: DestinationFlags,
    /// Sends each window when it has ended, and later corrections, until Ctrl-C, SIGTERM or --until
    #[arg(long, requires = "state", help_heading = "Following")]
    follow: bool,
    /// Where --follow keeps unsent counts and its position: a file, or a folder with a file for each named cluster
    #[arg(long, value_name = "PATH", requires = "follow", help_heading = "Following")]
    state: Option<PathBuf>,
    /// Sends running totals of settled windows instead of revisions; they begin at 0 when --state is created
    ///
    /// Prometheus and many other OTLP destinations accept only totals. Repeated totals do no harm, so the command sends totals
    /// again after a failure.
    #[arg(long, requires = "follow", conflicts_with = "moved", help_heading = "Following")]
    cumulative: bool,
    /// How often to send totals again while they stay the same [default: 1m]
    #[arg(long, value_name = "TIME", requires = "cumulative", help_heading = "Following")]
    every: Option<String>,
    /// Sends what is left in --state to this destination, although the state was created for another one
    #[arg(long, requires = "state", help_heading = "Following")]
    moved: bool,
    #[command(flatten)]
    what: FollowFlags,
    /// Keeps only counts with this value; may be repeated
    #[arg(
        long = "where",
        value_name = "DIMENSION=VALUE",
        conflicts_with = "follow",
        value_parser = Suggested(conditions),
        hide_possible_values = true,
        help_heading = "Query"
    )]
    only: Vec<String>,
    /// A label for each count, such as env=production; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", help_heading = "Destination")]
    labels: Vec<String>,
    /// The format of the report [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: PushedFormat,
}

/// The subcommands of `push`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PushAction {
    /// Drops a revision that the destination permanently refuses, and prints what is lost
    #[command(before_help = DROP_EXAMPLES)]
    Drop(DropFlags),
}

impl PushCommand {
    /// Returns how often unchanged totals are sent again. The default is one minute, because Prometheus shows a sample for only
    /// five minutes.
    fn every(&self) -> Result<Duration> {
        let every = self.every.as_deref().unwrap_or("1m");
        let ms = length("--every", every, "of 1s or more, such as 1m", 1000)?;
        Ok(Duration::from_millis(ms))
    }
}

/// Sends counts once, or with `--follow` whenever a window has ended.
///
/// # Errors
/// For flags, settings and states that can't be used: then this function sends nothing. Also if stdout can't be written.
pub(crate) async fn run(app: &App, flags: &PushCommand) -> Result<Exit> {
    let every = flags.every()?;
    let destination = flags.destination.destination(app.loaded()?, flags.cumulative)?;
    let (pushed, exit) = match &flags.state {
        None => once(app, flags, &destination).await?,
        Some(state) => {
            let plan = Plan {
                follow: &flags.what,
                destination: &destination,
                labels: &flags.labels,
                state,
                has_moved: flags.moved,
                name: None,
            };
            match flags.cumulative {
                true => totals::run(app, &plan, every).await?,
                false => follow::run(app, &plan).await?,
            }
        }
    };
    write(&pushed, flags.format)?;
    Ok(match exit {
        Exit::Fine if pushed.iter().any(is_short) => Exit::Response,
        exit => exit,
    })
}

/// Returns whether the destination may lack counts that were sent.
fn is_short(pushed: &Pushed) -> bool {
    !pushed.report.rejected.is_empty() || pushed.report.unsure > 0
}

/// A push of one cluster without `--follow`: reads the counts, and then sends them.
struct Single<'a> {
    app: &'a App,
    flags: &'a PushCommand,
    destination: &'a Destination,
    cluster: Cluster,
    session: Rc<Session>,
    labels: Labels,
    /// The push; `None` until the counts are read.
    push: Option<Push>,
}

/// The outcome of a push of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All counts were sent.
    Sent,
    /// Some counts could not be read; the others were sent.
    Partial,
    /// A signal interrupted the push before all counts were sent.
    Interrupted,
    /// No counts could be read.
    Unread(Exit),
    /// The destination did not accept all counts.
    Refused(Exit),
}

async fn once(
    app: &App,
    flags: &PushCommand,
    destination: &Destination,
) -> Result<(Vec<Pushed>, Exit)> {
    let query = QueryFlags { by: flags.what.by.clone(), only: flags.only.clone() };
    let query = query.query()?;
    let options = options(flags, &query)?;
    let single = |(cluster, session)| {
        Ok(Single {
            app,
            flags,
            destination,
            labels: labels_of(&app.settings, &cluster, &flags.labels)?,
            cluster,
            session,
            push: None,
        })
    };
    let all = app.sessions()?.into_iter().map(single);
    let mut all: Vec<Single<'_>> = all.collect::<Result<_>>()?;
    let shutdown = Shutdown::new();
    let work = join_all(all.iter_mut().map(|one| one.run((&options, &query), &shutdown)));
    let exit = match until_shut_down(&app.stop, &shutdown, work).await {
        Err(exit) => exit,
        Ok(outcomes) => exit_of(&outcomes, &shutdown),
    };
    let pushed = all.into_iter().filter_map(|one| {
        Some(Pushed { cluster: one.cluster.name, report: one.push?.report().clone() })
    });
    Ok((pushed.collect(), exit))
}

fn exit_of(outcomes: &[Outcome], shutdown: &Shutdown) -> Exit {
    let refused = outcomes.iter().find_map(|one| match one {
        Outcome::Refused(exit) => Some(*exit),
        Outcome::Interrupted => shutdown.signal(),
        _ => None,
    });
    let is_unread = |one: &Outcome| matches!(one, Outcome::Unread(_));
    match (refused, outcomes.first()) {
        (Some(exit), _) => exit,
        (None, Some(Outcome::Unread(exit))) if outcomes.iter().all(is_unread) => *exit,
        (None, _) if outcomes.iter().all(|one| *one == Outcome::Sent) => Exit::Fine,
        (None, _) => Exit::Missing,
    }
}

fn options(flags: &PushCommand, query: &Query) -> Result<CollectOptions> {
    let range = flags.what.single_range(USUAL_SINCE, unix_ms())?;
    let (step, given) = (flags.what.step()?, &flags.what.pacing.given);
    let metric = flags.what.metric.into();
    let mut options = CollectOptions::new(metric, range, &query.requested);
    (options.window, options.keep) = (step, Keep::Step(step));
    given.only(&["settle"]).read_over(options)
}

impl Single<'_> {
    /// Reads and sends all counts. Reports a failure immediately, without waiting for other clusters.
    async fn run(&mut self, what: (&CollectOptions, &Query), shutdown: &Shutdown) -> Outcome {
        let (app, name) = (self.app, self.cluster.name.clone());
        let read = match shutdown.unless_begun(self.read(what)).await {
            None => return Outcome::Interrupted,
            Some(read) => read,
        };
        let (push, is_whole) = match read {
            Ok(read) => read,
            Err(failure) => {
                let failure = failure.of_cluster(&name);
                app.fail(&name, &failure);
                return Outcome::Unread(failure.exit);
            }
        };
        // The push stays in `self`, so that the report shows what was sent even if a signal interrupts this function.
        let push = self.push.insert(push);
        let carried = match self.destination.carrier(&app.stderr) {
            Ok(mut carrier) => carrier.carry(push, shutdown, async |_, _| Ok(())).await,
            Err(failure) => Err(failure),
        };
        let report = push.report();
        for text in rejections(report) {
            app.warn(&name, text);
        }
        match carried {
            Ok(Carried::All) if is_whole => Outcome::Sent,
            Ok(Carried::All) => Outcome::Partial,
            Ok(Carried::Part) => Outcome::Interrupted,
            Err(failure) => Outcome::Refused(refused(app, &name, failure, report.samples)),
        }
    }

    /// Reads the counts. Returns a push that sends them, and whether they are complete.
    async fn read(&self, (options, query): (&CollectOptions, &Query)) -> Result<(Push, bool)> {
        let name = &self.cluster.name;
        let (table, gaps, failure) = read(&self.session, options.clone(), query).await?;
        if let Some(failure) = failure {
            self.app.fail(name, &failure);
        }
        let series = Arc::new(table.by_window(Some(self.flags.what.step()?))?);
        let export = Export::new(&series, &self.destination.export(&self.labels))?;
        for note in export.notes() {
            self.app.warn(name, note);
        }
        let push = Push::new(export, &self.destination.push(0))?;
        Ok((push, gaps.is_empty()))
    }
}

/// Reports that the destination did not accept the remaining counts. Returns the exit code.
fn refused(app: &App, cluster: &str, mut failure: Failure, samples: u64) -> Exit {
    failure.text = format!("{}; {samples} samples were accepted before", failure.text);
    app.fail(cluster, &failure);
    failure.exit
}

/// The formats of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PushedFormat {
    /// A line for each cluster.
    Table,
    /// One document.
    Json,
}

/// The result of pushing the counts of one cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Pushed {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// What was sent.
    #[serde(flatten)]
    pub(crate) report: PushReport,
}

/// Adds the report of a push to the total of all pushes.
pub(crate) fn add(total: &mut PushReport, report: &PushReport) {
    total.messages += report.messages;
    total.samples += report.samples;
    total.bytes += report.bytes;
    total.retries += report.retries;
    total.unsure += report.unsure;
    total.rejected.extend(report.rejected.iter().cloned());
}

/// Returns a sentence for each response with which the destination rejected samples.
pub(crate) fn rejections(report: &PushReport) -> impl Iterator<Item = String> {
    let rejected = report.rejected.iter();
    rejected.map(|rejected| format!("the destination rejected samples: {}", rejected.message))
}

/// Writes what a push has sent, for troubleshooting.
fn detail(app: &App, cluster: &str, report: &PushReport) {
    app.stderr.detail(format_args!(
        "{cluster}: {} samples in {} messages, {} sent again",
        report.samples, report.messages, report.retries
    ));
}

/// Writes the report to stdout.
///
/// # Errors
/// If stdout can't be written.
fn write(pushed: &[Pushed], format: PushedFormat) -> Result<()> {
    write_to(None, |_, out| match format {
        PushedFormat::Table => Ok(write_lines(pushed, out)?),
        PushedFormat::Json => Ok(write_document(&pushed, false, out)?),
    })
}

fn write_lines(pushed: &[Pushed], out: &mut dyn Write) -> io::Result<()> {
    if pushed.is_empty() {
        return Ok(());
    }
    let width = pushed.iter().map(|one| one.cluster.len()).max().unwrap_or(0).max("cluster".len());
    writeln!(out, "{:width$}  messages     samples  retries  rejected  unsure", "cluster")?;
    for Pushed { cluster, report } in pushed {
        // A destination may reject points without reporting their number. Each such response counts as one rejected point.
        let rejected: u64 =
            report.rejected.iter().map(|rejected| rejected.points.unwrap_or(1)).sum();
        writeln!(
            out,
            "{cluster:width$}  {:>8}  {:>10}  {:>7}  {rejected:>8}  {:>6}",
            report.messages, report.samples, report.retries, report.unsure
        )?;
    }
    Ok(())
}

/// The examples at the start of the help of `tallyfold push drop`.
const DROP_EXAMPLES: &str = "\
Examples:
  tallyfold push drop --state otlp.json
      Drops the revision that push --follow can't send, and prints what is lost. The next run resumes after it.
  tallyfold push drop --state /var/lib/tallyfold --cluster eu
      The same for a state that is a folder with a file for each cluster.
";

/// Flags of `tallyfold push drop`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DropFlags {
    /// The state that push --follow keeps
    #[arg(long, value_name = "PATH")]
    state: PathBuf,
    /// The cluster; needed if the state is a folder
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
}

/// Drops the pending revision of a state, and writes what is lost.
///
/// # Errors
/// For a state that can't be read or written, or that a running push uses.
pub(crate) async fn drop_pending(flags: &DropFlags, stderr: &Stderr) -> Result<Exit> {
    let file = StateFile::existing(&flags.state, flags.cluster.as_deref())?;
    let mut outbox = file.load(Outbox::from_json)?;
    let Some(lost) = outbox.pending_changes() else {
        stderr.note("nothing is pending");
        return Ok(Exit::Fine);
    };
    outbox.clear();
    file.replace(outbox.to_json()).await?;
    let [success, errors, filtered] = lost.changes.map(tallyfold::text::signed);
    stderr.note(format_args!(
        "dropped revision {} of {:?}, which was for {}; {} of its {} samples were finished; in total, it changes \
         success by {success}, errors by {errors} and filtered by {filtered}",
        lost.revision,
        lost.window,
        lost.format,
        lost.finished,
        lost.samples,
    ));
    if outbox.in_doubt() > 0 {
        stderr.note(format_args!(
            "{} samples are unacknowledged: the next push reports them",
            outbox.in_doubt()
        ));
    }
    Ok(Exit::Fine)
}
