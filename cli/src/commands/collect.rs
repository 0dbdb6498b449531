//! `tallyfold collect`: reads the counts of a long range. With a checkpoint, the same command resumes an interrupted run.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use tallyfold::{CollectOptions, CountTable, Keep, TimeStep, Window};
use tokio::sync::watch;

use crate::app::{App, each};
use crate::arguments::declared::{Declared, with_paragraph};
use crate::arguments::query::{
    MetricFlag, Query, QueryFlags, RangeFlags, Reading, Sharing, StepFlags,
};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};
use crate::files::remove_abandoned;
use crate::host::ranges::{Keeper, finished, gather};
use crate::host::session::{Session, unix_ms};
use crate::output::report::{Asked, Part, Report};
use crate::output::show::{OutputFormat, ShowFlags};
use crate::output::write::{check, write};
use crate::stderr::{Stderr, show};

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold collect --since 30d --checkpoint month --by-window 1d --format csv -o month.csv
      A month. After Ctrl-C or a crash, the same command resumes.
  tallyfold collect --since 3d --to today --by-window 15m --format parquet --by-date lake
      A nightly job: writes a file for each of the last three days, such as
      lake/date=2026-01-31/counts.parquet, and replaces older files.
  tallyfold collect --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --part 0/4 --checkpoint part0
      One of four machines that share the work.
";

/// A paragraph about `--deadline` for this command's help.
const DEADLINE: &str = "The command writes the counts that it has read by then, and exits with 6. If it has read none, it exits \
     with 4. --checkpoint keeps what was read.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("deadline_ms", |arg| with_paragraph(arg, DEADLINE)))]
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
    /// For named clusters, it contains a folder for each cluster. The packages for Python and Node read the same format.
    #[arg(long, value_name = "FOLDER", help_heading = "Checkpoint")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    sharing: Declared<Sharing>,
    #[command(flatten)]
    reading: Declared<Reading>,
    /// Writes a file for each UTC day below this folder, such as FOLDER/date=2026-01-31/counts.parquet
    ///
    /// The command writes only days that lie entirely in the range and that it has read completely. It replaces each file
    /// atomically.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["output", "zone", "part"], help_heading = "Output")]
    by_date: Option<PathBuf>,
    #[command(flatten)]
    show: ShowFlags,
}

/// Reads the counts of a range, and writes them. After a signal, writes no counts, but stores all finished windows in the
/// checkpoint, if there is one.
///
/// # Errors
/// For flags and settings that can't be used, and for files that can't be written.
pub(crate) async fn run(app: &App, flags: &CollectFlags) -> Result<Exit> {
    let query = flags.query.query()?;
    let range = flags.range.window(unix_ms())?;
    let steps = flags.step.of(range)?;
    let file_name = flags.file_of_a_day()?;
    let mut given = flags.reading.given.clone();
    given.overlay(flags.sharing.given.clone());
    let mut options = query.collect(flags.metric.into(), range, &given)?;
    if let Some(steps) = &steps {
        steps.fit(&mut options)?;
    }
    let unit = steps.as_ref().map(|steps| ("--by-window", steps.unit()));
    let unit = unit.or(file_name.map(|_| ("--by-date", TimeStep::DAY)));
    let keep = given.flag("keep");
    match (unit, keep) {
        // The output shows only the counts of each step, so keep no shorter windows.
        (Some((_, unit)), None) => options.keep = Keep::Step(unit),
        (Some((flag, unit)), Some(text)) if !keeps(options.keep, unit, range) => {
            return Err(Failure::usage(format!(
                "--keep {text}: {flag} needs the counts of shorter windows; want windows, or a step that divides {unit}"
            )));
        }
        _ => {}
    }
    let asked = Asked::new(flags.metric.into(), &query, range, &options);
    let show = match flags.by_date.as_ref().zip(file_name) {
        Some((folder, name)) => {
            make_folder(folder)?;
            flags.show_to(folder.join(name))
        }
        None => flags.show.clone(),
    };
    check(app.loaded()?, &asked, &show)?;
    let sessions = app.sessions_of(&[])?;
    let (stop, stopping) = watch::channel(false);
    let job = Job { options, is_usual: keep.is_none(), query, stopping };
    let work = each(&sessions, |cluster, session| {
        let (job, bar) = (job.clone(), app.stderr.bar(&cluster.name));
        let folder = flags.folder(&cluster, app.settings.is_named);
        async move { job.run(&cluster, &session, folder, &bar).await }
    });
    tokio::pin!(work);
    let mut exit = None;
    let (parts, missing) = tokio::select! {
        signal = app.stop.asked() => {
            exit = Some(signal);
            // The job abandons the windows that it is still reading, and stores all finished windows in the checkpoint.
            let _ = stop.send(true);
            work.await
        }
        done = &mut work => done,
    };
    let tables = Report {
        asked,
        parts: parts.into_iter().flatten().collect(),
        missing,
        is_named: app.settings.is_named,
    };
    app.fail_missing(&tables);
    if let Some(exit) = exit {
        app.stderr.note(match flags.checkpoint {
            Some(_) => "stopped; the same command resumes from the checkpoint",
            None => "stopped; with --checkpoint, the same command would resume here",
        });
        return Ok(exit);
    }
    let Some((folder, name)) = flags.by_date.as_ref().zip(file_name) else {
        write(&tables.counts(range, steps.as_ref())?, &show, &app.stderr)?;
        return Ok(tables.exit());
    };
    for day in whole_days(&tables, &app.stderr) {
        let folder = folder.join(format!("date={}", day.start().date()));
        make_folder(&folder)?;
        let show = flags.show_to(folder.join(name));
        write(&tables.counts(day, steps.as_ref())?, &show, &app.stderr)?;
        remove_abandoned(&folder);
    }
    Ok(tables.exit())
}

/// Returns whether counts that are kept in this way can be split into steps of `unit`.
fn keeps(keep: Keep, unit: TimeStep, range: Window) -> bool {
    let first = unit.after(unit.floor(range.start()));
    let is_one_step = first.is_none_or(|end| range.end() <= end);
    is_one_step
        || match keep {
            Keep::Step(kept) => unit.seconds().is_multiple_of(kept.seconds()),
            other => other == Keep::Windows,
        }
}

/// Returns the UTC days in the range that were read completely for all clusters. Writes a note about each day that
/// it leaves out.
fn whole_days(tables: &Report<Asked, CountTable>, stderr: &Stderr) -> Vec<Window> {
    let range = tables.asked.range;
    let gaps = tables.parts.iter().flat_map(|part| &part.gaps);
    let gaps: Vec<Window> = gaps.copied().collect();
    let starts = std::iter::successors(Some(TimeStep::DAY.floor(range.start())), |start| {
        TimeStep::DAY.after(*start).filter(|start| *start < range.end())
    });
    let days = starts.filter_map(|start| Window::new(start, TimeStep::DAY.after(start)?).ok());
    days.filter(|day| {
        let why = match () {
            () if !tables.missing.is_empty() => "the counts of a cluster are missing",
            () if gaps.iter().any(|gap| gap.overlaps(*day)) => "windows are missing",
            () if !range.contains(*day) => "the range covers only part of it",
            () => return true,
        };
        stderr.note(format_args!("{} is not written: {why}", day.start().date()));
        false
    })
    .collect()
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))
}

impl CollectFlags {
    /// Returns the output flags for this file.
    fn show_to(&self, file: PathBuf) -> ShowFlags {
        ShowFlags { output: Some(file), ..self.show.clone() }
    }

    /// Returns the name of a day's file; `None` without `--by-date`.
    fn file_of_a_day(&self) -> Result<Option<&'static str>> {
        let name = match self.show.format {
            _ if self.by_date.is_none() => return Ok(None),
            OutputFormat::Parquet => "counts.parquet",
            OutputFormat::Csv => "counts.csv",
            OutputFormat::Ndjson => "counts.ndjson",
            _ => {
                let text = "--by-date: want --format parquet, csv or ndjson";
                return Err(Failure::usage(text));
            }
        };
        Ok(Some(name))
    }

    /// Returns the folder of the cluster's checkpoint; `None` without `--checkpoint`.
    fn folder(&self, cluster: &Cluster, is_named: bool) -> Option<PathBuf> {
        let folder = self.checkpoint.as_ref()?;
        Some(match is_named {
            true => folder.join(&cluster.name),
            false => folder.clone(),
        })
    }
}

/// What a collect needs. It is the same for all clusters.
#[derive(Clone)]
struct Job {
    options: CollectOptions,
    /// Whether `--keep` has its default.
    is_usual: bool,
    query: Query,
    stopping: watch::Receiver<bool>,
}

impl Job {
    /// Collects the counts of a cluster. Returns `None` if a signal has stopped the command.
    async fn run(
        mut self,
        cluster: &Cluster,
        session: &Session,
        folder: Option<PathBuf>,
        bar: &ProgressBar,
    ) -> Result<Option<Part<CountTable>>> {
        let mut collect = session.machine.collect(self.options.clone())?;
        let mut keeper = match &folder {
            Some(folder) => Keeper::open(folder).await?,
            None => Keeper::default(),
        };
        let first = collect.wanted();
        if let Err(refused) = keeper.load(&mut collect) {
            let keeps_windows = self.options.keep == Keep::Windows;
            if !self.is_usual || keeps_windows || collect.wanted() != first {
                return Err(refused);
            }
            // An earlier run may have kept every window in the checkpoint. Steps can be added up from these windows.
            self.options.keep = Keep::Windows;
            collect = session.machine.collect(self.options)?;
            keeper.load(&mut collect).map_err(|error| match collect.wanted() == first {
                true => refused,
                false => error,
            })?;
        }
        let is_stopped = tokio::select! {
            ended = gather(session, &mut collect, &mut keeper, |now| {
                show(bar, now);
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
        Ok(Some(Part {
            gaps,
            failure: failure.map(|failure| failure.of_cluster(&cluster.name)),
            ..Part::of(cluster, table)
        }))
    }
}
