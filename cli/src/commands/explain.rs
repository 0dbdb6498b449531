//! `tallyfold explain`: finds the few combinations of dimension values that explain a change.

use std::io::{self, Write};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use tallyfold::text::{grouped, signed};
use tallyfold::{Dimension, Metric, Window};
use tallyfold_health::{Amount, Cause, ExplainOptions, Explanation, Measure, explain};

use super::compare::{Against, DEADLINE, read_both};
use crate::app::App;
use crate::arguments::declared::{Declared, Flags, Suggested, steps, with_paragraph};
use crate::arguments::query::{
    MetricFlag, Query, RangeFlags, ReadingNow, conditions, dimensions, dimensions_in, step,
    timestamp,
};
use crate::failure::{Exit, Failure, Result};
use crate::host::session::unix_ms;
use crate::output::document::MissingDocument;
use crate::output::documented::{missing_of, write_document};
use crate::output::grid::{Cells, Column, Grid, Holds, percent, share};
use crate::output::report::{Part, Report, ranges, span};
use crate::output::safe::shown;
use crate::output::sink::{Screen, write_to};
use crate::stderr::Stderr;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold explain --at 2026-01-31T03:00:00Z
      Why the error rate in these 15 minutes differs from the rate in the 15 minutes before.
  tallyfold explain --since 1h --against last-week --measure events --format json
      Why there are more or fewer events in the last hour than in the same hour a week ago.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("deadline_ms", |arg| with_paragraph(arg, DEADLINE)))]
pub(crate) struct ExplainFlags {
    /// A timestamp in the window to explain, UTC: 2026-01-31T03:00:00Z
    #[arg(long, value_name = "TIMESTAMP", conflicts_with_all = ["since", "from", "to"], help_heading = "Range")]
    at: Option<String>,
    /// The length of the window of --at
    #[arg(
        long,
        value_name = "STEP",
        default_value = "15m",
        value_parser = Suggested(steps),
        hide_possible_values = true,
        help_heading = "Range"
    )]
    length: String,
    #[command(flatten)]
    range: RangeFlags,
    /// The earlier range to compare with
    #[arg(long, value_enum, default_value_t = Against::Previous, help_heading = "Range")]
    against: Against,
    /// The metric to count
    #[arg(long, value_enum, default_value_t = MetricFlag::Delivery, help_heading = "Query")]
    metric: MetricFlag,
    /// The measure that has changed
    #[arg(long, value_name = "MEASURE", default_value = "error_rate", value_parser = measures(), help_heading = "Query")]
    measure: Measure,
    /// The dimensions to search for causes [default: all dimensions of the metric; reason only with --measure filtered,
    /// filtered_rate or events]
    #[arg(long, value_name = "A,B", help_heading = "Query", value_parser = Suggested(dimensions), hide_possible_values = true)]
    by: Option<String>,
    /// Keeps only counts with this value; may be repeated
    #[arg(long = "where", value_name = "DIMENSION=VALUE", help_heading = "Query", value_parser = Suggested(conditions), hide_possible_values = true)]
    only: Vec<String>,
    #[command(flatten)]
    causes: Declared<Causes>,
    #[command(flatten)]
    reading: Declared<ReadingNow>,
    /// The format [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: ExplainedFormat,
}

/// The flags that limit the causes.
#[derive(Clone, Debug)]
struct Causes;

impl Flags for Causes {
    type Options = ExplainOptions;

    const NAMES: &'static [&'static str] = &["most", "others", "keep_unusual"];
    const HEADING: &'static str = "Output";
    const IS_COMMON: bool = true;
}

fn measures() -> impl TypedValueParser<Value = Measure> {
    let names = Measure::ALL.iter().map(|measure| measure.as_str());
    let parser = PossibleValuesParser::new(names);
    parser.try_map(|name| Measure::from_name(&name).ok_or("not a measure"))
}

/// If the filtered rate's change, counted in events, is more than this many times the error rate's, a note suggests
/// `--measure filtered_rate`.
const MUCH_MORE: u128 = 4;

/// The note about the filtered rate.
const FILTERED: &str =
    "the filtered rate has changed more: add --measure filtered_rate to explain it";

/// Writes what explains the change in each cluster.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, flags: &ExplainFlags) -> Result<Exit> {
    let report = find(app, flags, &[]).await?;
    app.fail_missing(&report);
    write(&report, flags.format, &app.stderr)?;
    Ok(report.exit())
}

/// Explains the change in the clusters with these names, or in all clusters if `clusters` is empty.
///
/// # Errors
/// For flags and settings that can't be used, and for a name that no cluster has.
pub(super) async fn find(
    app: &App,
    flags: &ExplainFlags,
    clusters: &[String],
) -> Result<ExplainReport> {
    let metric = Metric::from(flags.metric);
    let measure = flags.measure;
    let query = flags.query(metric, measure)?;
    let now = flags.window()?;
    let before = flags.against.of(now)?;
    let causes: ExplainOptions = flags.causes.given.read()?;
    let ranges = [
        query.collect(metric, before, &flags.reading.given)?,
        query.collect(metric, now, &flags.reading.given)?,
    ];
    let asked = AskedChange { metric, measure, query: query.clone(), before, now };
    app.report(asked, clusters, |cluster, session| {
        let (ranges, query, causes) = (ranges.clone(), query.clone(), causes.clone());
        async move {
            let [before, now] = read_both(app, (&cluster, &session), ranges, &query).await?;
            let explanation = explain(&before, &now, measure, &causes)?;
            if measure == Measure::ErrorRate {
                let filtered = explain(&before, &now, Measure::FilteredRate, &causes)?;
                let [errors, events] =
                    [&explanation, &filtered].map(|found| found.change.unsigned_abs());
                if !filtered.causes.is_empty() && events > MUCH_MORE * errors {
                    app.note(&cluster.name, FILTERED);
                }
            }
            Ok(Part {
                provisional: [before.provisional(), now.provisional()].concat(),
                ..Part::of(&cluster, explanation)
            })
        }
    })
    .await
}

impl ExplainFlags {
    fn window(&self) -> Result<Window> {
        let Some(at) = &self.at else {
            return self.range.window(unix_ms());
        };
        let step = step("--length", &self.length)?;
        let start = step.floor(timestamp("--at", at, unix_ms())?);
        let end = step.after(start);
        let window = end.and_then(|end| Window::new(start, end).ok());
        window.ok_or_else(|| {
            let text = "--at: want an earlier timestamp; the window would end after the year 9999";
            Failure::usage(text)
        })
    }

    /// Returns the query, with the dimensions to search for causes. By default, these include `reason` only if the measure
    /// counts filtered events.
    fn query(&self, metric: Metric, measure: Measure) -> Result<Query> {
        let has_reasons =
            matches!(measure, Measure::Filtered | Measure::FilteredRate | Measure::Events);
        let is_usual =
            |one: &Dimension| metric.has(*one) && (has_reasons || *one != Dimension::Reason);
        let by = match &self.by {
            Some(names) => dimensions_in(names)?,
            None => Dimension::ALL.iter().copied().filter(is_usual).collect(),
        };
        Query::new(by, &self.only)
    }
}

/// The formats of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainedFormat {
    /// A sentence, and a line for each cause.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema explain).
    Json,
}

/// The width of output that isn't a terminal, in columns.
const PIPE_WIDTH: usize = 400;

/// The explanations of a change, by cluster.
pub(super) type ExplainReport = Report<AskedChange, Explanation>;

/// The change that is explained in each cluster.
#[derive(Debug)]
pub(super) struct AskedChange {
    metric: Metric,
    /// The measure whose change is explained.
    measure: Measure,
    /// The dimensions and the filters.
    query: Query,
    /// The earlier range to compare with.
    before: Window,
    /// The range that is explained.
    now: Window,
}

/// What explains a change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "tallyfold explain --format json")]
pub(crate) struct ExplainedDocument<'a> {
    /// The version of this document. The number grows when a member is removed or changes its meaning; members may be
    /// added.
    format: ExplainedName,
    /// The metric.
    metric: Metric,
    /// The dimensions that were searched for causes.
    #[schemars(with = "&[String]")]
    dimensions: &'a [Dimension],
    /// The earlier range that `now` is compared with.
    before: Window,
    /// The range that is explained.
    now: Window,
    /// What was found, in the order of the configuration.
    clusters: Vec<ExplainedCluster<'a>>,
    /// The clusters without any result.
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
fn write(report: &ExplainReport, format: ExplainedFormat, stderr: &Stderr) -> Result<()> {
    for part in &report.parts {
        if !part.provisional.is_empty() {
            stderr.warning(format_args!(
                "{}counts of {} may still change",
                report.place(&part.cluster),
                ranges(&part.provisional)
            ));
        }
    }
    write_to(None, |screen, out| match format {
        ExplainedFormat::Table => Ok(write_table(report, screen, out)?),
        ExplainedFormat::Json => Ok(write_document(&document(report), true, out)?),
    })
}

/// Converts a report to its JSON document.
pub(super) fn document(report: &ExplainReport) -> ExplainedDocument<'_> {
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

fn write_table(report: &ExplainReport, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    // Programs that read from a pipe need complete values, so their table is wide.
    let screen = Screen { width: Some(screen.width.unwrap_or(PIPE_WIDTH)), ..screen };
    for (index, part) in report.parts.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let Explanation { change, causes, unexplained, .. } = &part.found;
        writeln!(
            out,
            "{}{} of {}, {} after {}: {}",
            report.place(&part.cluster),
            report.asked.measure,
            report.asked.metric,
            span(report.asked.now),
            span(report.asked.before),
            changed(*change, report.asked.measure),
        )?;
        let mut grid = Grid {
            columns: columns(&report.asked.query.by),
            lines: causes.iter().map(|cause| line(&report.asked.query.by, cause)).collect(),
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
        (1.., true) => format!("{events} events more than at the earlier rate"),
        (_, true) => format!("{events} events fewer than at the earlier rate"),
        (1.., false) => format!("{events} events more"),
        (_, false) => format!("{events} events fewer"),
    }
}

fn columns(by: &[Dimension]) -> Vec<Column> {
    let names = by.iter().map(|name| Column::new(name.as_str(), Holds::Texts));
    let numbers = ["before", "now", "expected", "events", "share"];
    let numbers = numbers.map(|name| Column::new(name, Holds::Numbers));
    names.chain(numbers).collect()
}

fn line(by: &[Dimension], cause: &Cause) -> Cells {
    let value = |dimension: &Dimension| {
        let found = cause.r#where.iter().find(|(own, _)| own == dimension.as_str());
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
    Cells { cells, ..Cells::default() }
}

/// Returns the last row: the part of the change that no cause explains.
fn rest(report: &ExplainReport, part: &Part<Explanation>, unexplained: i128) -> Cells {
    let Explanation { change, before, now, causes, is_normal, .. } = &part.found;
    let rest = match (causes.is_empty(), is_normal) {
        (false, _) => "unexplained",
        (true, _) if *change == 0 => "no change",
        (true, true) => "normal variation",
        (true, false) => "no cause",
    };
    let of_all = (*change != 0).then(|| unexplained as f64 / *change as f64);
    let [before, now] = match causes.is_empty() {
        true => [amount(*before), amount(*now)],
        false => Default::default(),
    };
    let unexplained = signed(unexplained);
    let numbers = [before, now, String::new(), unexplained, share(of_all)];
    Cells::total(rest, report.asked.query.by.len(), numbers)
}

/// Formats the number of events, followed by the rate if the measure is a rate.
fn amount(amount: Amount) -> String {
    match amount.whole {
        None => grouped(amount.part),
        Some(whole) => {
            let rate = (whole > 0).then(|| amount.part as f64 / whole as f64);
            format!("{} ({})", grouped(amount.part), percent(rate))
        }
    }
}
