//! Writes the explanation of a change as a table or a JSON document.

use std::io::{self, Write};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use tallyfold::text::{grouped, signed};
use tallyfold::{Metric, Window};
use tallyfold_health::{Amount, Cause, Explanation, Measure};

use super::document::MissingDocument;
use super::documented::missing_of;
use super::grid::{Cells, Column, Grid, Holds, percent, share};
use super::report::{Part, Report};
use super::report::{span, spans};
use super::safe::{harmless, shown};
use super::sink::{Screen, write_to};
use crate::arguments::query::Query;
use crate::failure::Result;
use crate::stderr::Stderr;

/// How an explanation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainedFormat {
    /// A sentence, and a line for each cause.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema explain).
    Json,
}

/// The width of output other than a terminal.
const PIPE_WIDTH: usize = 400;

/// Explanations of a change.
pub(crate) type ExplainReport = Report<AskedChange, Explanation>;

/// The change that is explained in each cluster.
#[derive(Debug)]
pub(crate) struct AskedChange {
    /// Which counts.
    pub(crate) metric: Metric,
    /// The measure whose change is explained.
    pub(crate) measure: Measure,
    /// The dimensions and the filters.
    pub(crate) query: Query,
    /// The baseline.
    pub(crate) before: Window,
    /// The range that is explained.
    pub(crate) now: Window,
}

/// What explains a change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "tallyfold explain --format json")]
pub(crate) struct ExplainedDocument<'a> {
    /// The version of this document. The number grows when something is removed or means something else; members may be added.
    format: ExplainedName,
    /// Which counts.
    metric: Metric,
    /// The dimensions in which causes were looked for.
    dimensions: &'a [String],
    /// The time that is taken for normal.
    before: Window,
    /// The time that is explained.
    now: Window,
    /// What was found, in the order of the configuration.
    clusters: Vec<ExplainedCluster<'a>>,
    /// The clusters of which nothing is known.
    missing: Vec<MissingDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
enum ExplainedName {
    /// The only version.
    #[serde(rename = "tallyfold-explanation/1")]
    Explanation1,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExplainedCluster<'a> {
    /// The cluster's name; `default` if it has none.
    cluster: &'a str,
    /// The windows whose counts may still change.
    provisional: &'a [Window],
    /// What explains the change.
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// Writes explanations to stdout.
///
/// # Errors
/// If stdout can't be written.
pub(crate) fn write(
    report: &ExplainReport,
    format: ExplainedFormat,
    stderr: &Stderr,
) -> Result<()> {
    for part in &report.parts {
        if !part.provisional.is_empty() {
            stderr.warning(format_args!(
                "{}counts of {} may still change",
                place(report, part),
                spans(&part.provisional)
            ));
        }
    }
    write_to(None, |screen, out| match format {
        ExplainedFormat::Table => Ok(write_table(report, screen, out)?),
        ExplainedFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(report)).map_err(io::Error::from)?;
            Ok(writeln!(out)?)
        }
    })
}

fn document(report: &ExplainReport) -> ExplainedDocument<'_> {
    ExplainedDocument {
        format: ExplainedName::Explanation1,
        metric: report.asked.metric,
        dimensions: &report.asked.query.by,
        before: report.asked.before,
        now: report.asked.now,
        clusters: report
            .parts
            .iter()
            .map(|part| ExplainedCluster {
                cluster: &part.cluster,
                provisional: &part.provisional,
                explanation: &part.found,
            })
            .collect(),
        missing: report.missing.iter().map(missing_of).collect(),
    }
}

fn place(report: &ExplainReport, part: &Part<Explanation>) -> String {
    match report.is_named {
        true => format!("{}: ", harmless(&part.cluster)),
        false => String::new(),
    }
}

fn write_table(report: &ExplainReport, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    // Programs that read from a pipe need values that are not truncated.
    let screen = Screen {
        width: Some(screen.width.unwrap_or(PIPE_WIDTH)),
        ..screen
    };
    for (index, part) in report.parts.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let Explanation {
            change,
            causes,
            unexplained,
            ..
        } = &part.found;
        writeln!(
            out,
            "{}{} of {}, {} after {}: {}",
            place(report, part),
            report.asked.measure,
            report.asked.metric,
            span(report.asked.now),
            span(report.asked.before),
            changed(*change, report.asked.measure),
        )?;
        let mut grid = Grid {
            columns: columns(&report.asked.query.by),
            lines: causes
                .iter()
                .map(|cause| line(&report.asked.query.by, cause))
                .collect(),
        };
        grid.lines.push(rest(report, part, *unexplained));
        grid.write(screen, out)?;
    }
    Ok(())
}

fn changed(change: i128, measure: Measure) -> String {
    let events = grouped(change.unsigned_abs());
    match (change, measure.is_rate()) {
        (0, _) => "no change".to_owned(),
        (1.., true) => format!("{events} events more than the rate before would have given"),
        (_, true) => format!("{events} events fewer than the rate before would have given"),
        (1.., false) => format!("{events} events more"),
        (_, false) => format!("{events} events fewer"),
    }
}

fn columns(by: &[String]) -> Vec<Column> {
    let names = by.iter().map(|name| Column::new(name, Holds::Texts));
    let numbers = ["before", "now", "expected", "events", "share"];
    let numbers = numbers.map(|name| Column::new(name, Holds::Numbers));
    names.chain(numbers).collect()
}

fn line(by: &[String], cause: &Cause) -> Cells {
    let value = |name: &String| {
        let found = cause.r#where.iter().find(|(own, _)| own == name);
        found.map_or_else(|| "*".to_owned(), |(_, value)| shown(value))
    };
    let mut cells: Vec<String> = by.iter().map(value).collect();
    cells.extend([
        amount(cause.before),
        amount(cause.now),
        grouped(cause.expected.round()),
        signed(cause.events),
        share(Some(cause.share)),
    ]);
    Cells {
        cells,
        ..Cells::default()
    }
}

/// The row for the part of the change that no cause explains.
fn rest(report: &ExplainReport, part: &Part<Explanation>, unexplained: i128) -> Cells {
    let Explanation {
        change,
        before,
        now,
        causes,
        ..
    } = &part.found;
    let mut cells = vec![String::new(); report.asked.query.by.len()];
    if let Some(first) = cells.first_mut() {
        *first = match causes.is_empty() {
            true => "no cause".to_owned(),
            false => "unexplained".to_owned(),
        };
    }
    let of_all = (*change != 0).then(|| unexplained as f64 / *change as f64);
    let sums = match causes.is_empty() {
        true => [amount(*before), amount(*now)],
        false => Default::default(),
    };
    cells.extend(sums);
    cells.extend([String::new(), signed(unexplained), share(of_all)]);
    Cells {
        cells,
        is_total: true,
        ..Cells::default()
    }
}

/// The number of events, followed by the rate if the measure is a rate.
fn amount(amount: Amount) -> String {
    match amount.whole {
        None => grouped(amount.part),
        Some(whole) => {
            let rate = (whole > 0).then(|| amount.part as f64 / whole as f64);
            format!("{} ({})", grouped(amount.part), percent(rate))
        }
    }
}
