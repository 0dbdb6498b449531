//! What `delivery` and `ingestion` have in common: the counts of a range.

use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use tallyfold::{Collect, CollectOptions, CountTable, Keep, Metric, TimeStep, Window};

use super::each::{each, sessions, with_doctor};
use super::verdict::VerdictFlags;
use crate::app::App;
use crate::arguments::declared::Declared;
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::query::{Query, QueryFlags, ReadingNow};
use crate::arguments::range::RangeFlags;
use crate::config::settings::Cluster;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::host::checkpoint::Keeper;
use crate::host::clock::unix_ms;
use crate::host::gather::gather;
use crate::host::session::Session;
use crate::output::flags::ShowFlags;
use crate::output::report::{Asked, Counted, Part, Report};
use crate::output::write::write;

/// Flags of commands that show the counts of a range.
#[derive(Args, Clone, Debug)]
pub(crate) struct CountFlags {
    #[command(flatten)]
    pub(crate) range: RangeFlags,
    #[command(flatten)]
    pub(crate) query: QueryFlags,
    /// Shows counts by windows of this step too: 15m, 1h, 1d
    #[arg(long, value_name = "STEP", help_heading = "Query")]
    pub(crate) by_window: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Declared<ReadingNow>,
    #[command(flatten)]
    pub(crate) verdict: VerdictFlags,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
}

/// Runs one of the commands.
///
/// # Errors
/// For flags and settings that can't be used, and for a place that can't be written.
pub(crate) async fn run(app: &App, metric: Metric, flags: &CountFlags) -> Result<Exit> {
    let query = flags.query.query()?;
    let mut range = flags.range.window(unix_ms())?;
    let step = flags.by_window.as_deref().map(step_of).transpose()?;
    let mut options = options(metric, &query, range, &flags.reading.given)?;
    if flags.show.writes_settled_only() && flags.range.to.is_none() {
        // The newest windows would be left out, and of a short range nothing would be left.
        let settled_ms = i64::try_from(options.settle_ms).unwrap_or(i64::MAX);
        range = flags.range.window(unix_ms().saturating_sub(settled_ms))?;
        options = self::options(metric, &query, range, &flags.reading.given)?;
    }
    if let Some(step) = step.filter(|step| step.seconds() < options.window.seconds()) {
        // Counts of a longer window could not be shown by this step.
        options.window = step;
    }
    options.keep = step.map_or(Keep::Total, Keep::Step);
    let asked = asked(metric, &query, range, &options);
    let limit = flags.verdict.limit()?;
    let sessions = sessions(app)?;
    let (parts, missing) = each(&sessions, |cluster, session| {
        let (options, query) = (options.clone(), query.clone());
        async move {
            let (table, gaps, failure) = read(&session, options, &query).await?;
            Ok(part(&cluster, counted(table, step)?, gaps, failure))
        }
    })
    .await;
    let report = Report {
        asked,
        parts,
        missing,
        is_named: app.settings.is_named,
    };
    app.tell(&report);
    write(&report, &flags.show, &app.voice)?;
    match limit.is_some_and(|limit| limit.judge(&report, &app.voice)) {
        true => Ok(Exit::Unhealthy),
        false => Ok(report.exit()),
    }
}

/// Counts by windows of a step, or their sum.
///
/// # Errors
/// If a window crosses the edge of a step.
pub(crate) fn counted(table: CountTable, step: Option<TimeStep>) -> Result<Counted> {
    Ok(match step {
        None => Counted::Table(table),
        Some(step) => Counted::Series(Arc::new(table.by_window(Some(step))?)),
    })
}

/// What a report says was asked.
pub(crate) fn asked(
    metric: Metric,
    query: &Query,
    range: Window,
    options: &CollectOptions,
) -> Asked {
    Asked {
        metric,
        by: query.by.clone(),
        only: query.only.clone(),
        range,
        before: None,
        settle_ms: options.settle_ms,
    }
}

/// A part of a report.
pub(crate) fn part(
    cluster: &Cluster,
    counts: Counted,
    gaps: Vec<Window>,
    failure: Option<Failure>,
) -> Part {
    Part {
        cluster: cluster.name.clone(),
        labels: cluster.labels.clone(),
        provisional: counts.provisional(),
        counts,
        gaps,
        failure: failure.map(|failure| with_doctor(failure, &cluster.name)),
    }
}

/// The options of a collect.
///
/// # Errors
/// For flags that can't be used.
pub(crate) fn options(
    metric: Metric,
    query: &Query,
    range: Window,
    reading: &Given,
) -> Result<CollectOptions> {
    let mut given = Given::default();
    let text = |text: String| Raw::Text(text);
    given.set("metric", text(metric.to_string()), Origin::Flag);
    given.set("start", text(range.start().to_string()), Origin::Flag);
    given.set("end", text(range.end().to_string()), Origin::Flag);
    let asked = query.asked.iter().cloned().map(Raw::Text).collect();
    given.set("dimensions", Raw::List(asked), Origin::Flag);
    given.overlay(reading.clone());
    given.read()
}

/// Reads a range: its counts, what is missing, and why.
///
/// # Errors
/// If nothing could be read.
pub(crate) async fn read(
    session: &Rc<Session>,
    options: CollectOptions,
    query: &Query,
) -> Result<(CountTable, Vec<Window>, Option<Failure>)> {
    let mut collect = session.machine.collect(options)?;
    gather(session, &mut collect, &mut Keeper::default(), |_| ()).await?;
    let (table, gaps, failure) = ended(&collect)?;
    Ok((shaped(&table, query)?, gaps, failure))
}

/// What a collect has read.
///
/// # Errors
/// If nothing could be read.
pub(crate) fn ended(collect: &Collect) -> Result<(CountTable, Vec<Window>, Option<Failure>)> {
    match collect.finish() {
        Ok(table) => Ok((table, Vec::new(), None)),
        Err(mut error) => match error.partial.take() {
            None => Err(error.into()),
            Some(table) => Ok((table, error.gaps.clone(), Some(error.into()))),
        },
    }
}

/// The counts that are wanted of those that were asked for.
///
/// # Errors
/// For dimensions that the table does not have.
pub(crate) fn shaped(table: &CountTable, query: &Query) -> Result<CountTable> {
    let kept = table.filter(&query.only)?;
    Ok(match query.by == query.asked {
        true => kept,
        false => kept.group_by(&query.by)?,
    })
}

/// Parses a step.
///
/// # Errors
/// For a text that is none.
pub(crate) fn step_of(text: &str) -> Result<TimeStep> {
    TimeStep::parse(text)
        .map_err(|error| Failure::usage(format!("--by-window: {}", error.message())))
}
