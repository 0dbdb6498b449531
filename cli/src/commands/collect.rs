//! `tallyfold collect`: a long range, with a checkpoint from which the same command resumes.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use tallyfold::{CollectOptions, Keep};
use tokio::sync::watch;

use crate::app::{App, each};
use crate::arguments::declared::Declared;
use crate::arguments::query::{
    MetricFlag, Query, QueryFlags, RangeFlags, Reading, Sharing, StepFlags, Steps,
};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Result};
use crate::host::ranges::{Keeper, finished, gather};
use crate::host::session::{Session, unix_ms};
use crate::output::report::{Asked, Counted, Part, Report};
use crate::output::show::ShowFlags;
use crate::output::write::write;
use crate::stderr::{Bars, show};

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold collect --since 30d --checkpoint month --by-window 1d --format csv -o month.csv
      A month. After Ctrl-C or a crash, the same command resumes.
  tallyfold collect --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --part 0/4 --checkpoint part0
      One of four machines that share the work.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct CollectFlags {
    /// The metric to count
    #[arg(long, value_enum, default_value_t = MetricFlag::Delivery, help_heading = "Query")]
    metric: MetricFlag,
    #[command(flatten)]
    range: RangeFlags,
    #[command(flatten)]
    query: QueryFlags,
    #[command(flatten)]
    step: StepFlags,
    /// A folder that keeps what was read; the same command resumes from it
    ///
    /// With several clusters, it contains a folder for each, with the cluster's name. Python and Node read it, too.
    /// With --by-window, it keeps the counts of each step by default (--keep).
    #[arg(long, value_name = "FOLDER", help_heading = "Checkpoint")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    sharing: Declared<Sharing>,
    #[command(flatten)]
    reading: Declared<Reading>,
    #[command(flatten)]
    show: ShowFlags,
}

/// Runs the command. After a signal, the checkpoint contains all windows that were read until then.
///
/// # Errors
/// For flags and settings that can't be used, and for files that can't be written.
pub(crate) async fn run(app: &App, flags: &CollectFlags) -> Result<Exit> {
    let query = flags.query.query()?;
    let range = flags.range.window(unix_ms())?;
    let steps = flags.step.of(range)?;
    let mut given = flags.reading.given.clone();
    given.overlay(flags.sharing.given.clone());
    let mut options = query.collect(flags.metric.into(), range, &given)?;
    let is_usual = given.get("keep").is_none();
    if let Some(unit) = steps.as_ref().map(Steps::unit).filter(|_| is_usual) {
        // The output shows only the counts of each step.
        if unit.seconds().is_multiple_of(options.window.seconds()) {
            options.keep = Keep::Step(unit);
        }
    }
    let asked = Asked::new(flags.metric.into(), &query, range, &options);
    let sessions = app.sessions()?;
    let bars = Bars::new(&app.stderr);
    let (stop, stopping) = watch::channel(false);
    let job = Job {
        options,
        is_usual,
        query,
        steps,
        stopping,
    };
    let work = each(&sessions, |cluster, session| {
        let (job, bar) = (job.clone(), bars.add(&cluster.name));
        let folder = flags.folder(&cluster, app.settings.is_named);
        async move { job.run(&cluster, &session, folder, &bar).await }
    });
    tokio::pin!(work);
    let mut exit = None;
    let (parts, missing) = tokio::select! {
        signal = app.stop.asked() => {
            exit = Some(signal);
            // Windows that are being read are abandoned; windows that were read are stored.
            let _ = stop.send(true);
            work.await
        }
        done = &mut work => done,
    };
    bars.clear();
    let report = Report {
        asked,
        parts: parts.into_iter().flatten().collect(),
        missing,
        is_named: app.settings.is_named,
    };
    app.fail_missing(&report);
    if let Some(exit) = exit {
        app.stderr.note(match flags.checkpoint {
            Some(_) => "stopped; the same command resumes from the checkpoint",
            None => "stopped; with --checkpoint, the same command would resume here",
        });
        return Ok(exit);
    }
    write(&report, &flags.show, &app.stderr)?;
    Ok(report.exit())
}

impl CollectFlags {
    /// The folder of one cluster.
    fn folder(&self, cluster: &Cluster, is_named: bool) -> Option<PathBuf> {
        let folder = self.checkpoint.as_ref()?;
        Some(match is_named {
            true => folder.join(&cluster.name),
            false => folder.clone(),
        })
    }
}

/// The work for each cluster.
#[derive(Clone)]
struct Job {
    options: CollectOptions,
    /// Whether the user has not set `--keep`.
    is_usual: bool,
    query: Query,
    steps: Option<Steps>,
    stopping: watch::Receiver<bool>,
}

impl Job {
    /// Collects; returns `None` if it was stopped.
    async fn run(
        mut self,
        cluster: &Cluster,
        session: &Session,
        folder: Option<PathBuf>,
        bar: &ProgressBar,
    ) -> Result<Option<Part>> {
        let mut collect = session.machine.collect(self.options.clone())?;
        let mut keeper = match &folder {
            Some(folder) => Keeper::open(folder).await?,
            None => Keeper::default(),
        };
        if let Err(refused) = keeper.load(&mut collect) {
            if !self.is_usual || self.options.keep == Keep::Windows {
                return Err(refused);
            }
            // An earlier run has kept every window, from which any step can be shown.
            self.options.keep = Keep::Windows;
            collect = session.machine.collect(self.options)?;
            keeper.load(&mut collect)?;
        }
        let is_stopped = tokio::select! {
            ended = gather(session, &mut collect, &mut keeper, |now| {
                show(bar, (now.planned, now.done, now.failed), now.waiting_ms);
            }) => {
                ended?;
                false
            }
            _ = self.stopping.wait_for(|stopping| *stopping) => true,
        };
        if is_stopped {
            keeper.flush(&mut collect).await?;
            return Ok(None);
        }
        let (table, gaps, failure) = finished(&collect)?;
        let table = self.query.shape(&table)?;
        let counts = Counted::by_step(table, self.steps.as_ref())?;
        Ok(Some(Part::new(cluster, counts, gaps, failure)))
    }
}
