//! `tallyfold explain`: which few combinations of values explain a change.

use clap::Args;
use clap::builder::PossibleValuesParser;
use tallyfold::{CollectOptions, Dimension, Metric, TimeStep, Window};
use tallyfold_health::{ExplainOptions, Measure, explain};

use super::compare::Against;
use crate::app::{App, each};
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::query::{MetricFlag, Query, QueryFlags, RangeFlags, ReadingNow, instant};
use crate::failure::{Exit, Failure, Result};
use crate::host::clock::unix_ms;
use crate::host::ranges::read;
use crate::output::explained::{AskedChange, ExplainedFormat, write};
use crate::output::report::{Part, Report};

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold explain --at 2026-01-31T03:00:00Z
      Why the error rate of that quarter of an hour differs from that of the quarter before it.
  tallyfold explain --since 1h --against last-week --measure events --format json
      What is missing, or more, in the last hour beside the same hour a week ago.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainFlags {
    /// An instant in the window to explain, UTC: 2026-01-31T03:00:00Z
    #[arg(long, value_name = "INSTANT", conflicts_with_all = ["since", "from", "to"], help_heading = "Range")]
    at: Option<String>,
    /// The length of that window
    #[arg(
        long,
        value_name = "STEP",
        default_value = "15m",
        help_heading = "Range"
    )]
    length: String,
    #[command(flatten)]
    range: RangeFlags,
    /// Which earlier range is taken for normal
    #[arg(long, value_enum, default_value_t = Against::Previous, help_heading = "Range")]
    against: Against,
    /// Which counts
    #[arg(long, value_enum, default_value_t = MetricFlag::Delivery, help_heading = "Query")]
    metric: MetricFlag,
    /// What has changed
    #[arg(long, value_name = "MEASURE", default_value = "error_rate", value_parser = measures(), help_heading = "Query")]
    measure: String,
    /// The dimensions in which causes are looked for [default: all; reasons only where events are filtered]
    #[arg(long, value_name = "A,B", help_heading = "Query")]
    by: Option<String>,
    /// Keeps only counts with this value; may be repeated
    #[arg(long = "where", value_name = "DIMENSION=VALUE", help_heading = "Query")]
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

/// How many causes are named.
#[derive(Clone, Debug)]
struct Causes;

impl Flags for Causes {
    type Options = ExplainOptions;

    const NAMES: &'static [&'static str] = &["most", "others"];
    const HEADING: &'static str = "Output";
    const IS_COMMON: bool = true;
}

fn measures() -> PossibleValuesParser {
    PossibleValuesParser::new(Measure::ALL.iter().map(|measure| measure.as_str()))
}

/// Runs the command.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, flags: &ExplainFlags) -> Result<Exit> {
    let metric = Metric::from(flags.metric);
    let measure = Measure::from_name(&flags.measure).unwrap_or(Measure::ErrorRate);
    let query = flags.query(metric, measure)?;
    let now = flags.window()?;
    let before = flags.against.of(now)?;
    let causes: ExplainOptions = flags.causes.given.read()?;
    let read_options =
        |range| -> Result<CollectOptions> { query.collect(metric, range, &flags.reading.given) };
    let ranges = (read_options(before)?, read_options(now)?);
    let sessions = app.sessions()?;
    let (parts, missing) = each(&sessions, |cluster, session| {
        let ((before, now), query, causes) = (ranges.clone(), query.clone(), causes.clone());
        async move {
            let (before, now) =
                tokio::join!(read(&session, before, &query), read(&session, now, &query));
            let ((before, _, failure), (now, _, other)) = (before?, now?);
            // Counts of an incomplete range can't explain a change.
            if let Some(failure) = failure.or(other) {
                return Err(failure);
            }
            let explanation = explain(&before, &now, measure, &causes)?;
            Ok(Part {
                provisional: [before.provisional(), now.provisional()].concat(),
                ..Part::of(&cluster, explanation)
            })
        }
    })
    .await;
    let report = Report {
        asked: AskedChange {
            metric,
            measure,
            query,
            before,
            now,
        },
        parts,
        missing,
        is_named: app.settings.is_named,
    };
    app.fail_missing(&report);
    write(&report, flags.format, &app.stderr)?;
    Ok(report.exit())
}

impl ExplainFlags {
    fn window(&self) -> Result<Window> {
        let Some(at) = &self.at else {
            return self.range.window(unix_ms());
        };
        let step = TimeStep::parse(&self.length)
            .map_err(|error| Failure::usage(format!("--length: {}", error.message())))?;
        let start = step.floor(instant("--at", at)?);
        let end = step.after(start);
        let window = end.and_then(|end| Window::new(start, end).ok());
        window.ok_or_else(|| Failure::usage("--at: want an instant before the year 9999"))
    }

    fn query(&self, metric: Metric, measure: Measure) -> Result<Query> {
        let has_reasons = matches!(
            measure,
            Measure::Filtered | Measure::FilteredRate | Measure::Events
        );
        let usual = || {
            let all = Dimension::ALL.iter().filter(|dimension| {
                metric.has(**dimension) && (has_reasons || **dimension != Dimension::Reason)
            });
            let names: Vec<&str> = all.map(|dimension| dimension.as_str()).collect();
            names.join(",")
        };
        let flags = QueryFlags {
            by: self.by.clone().unwrap_or_else(usual),
            only: self.only.clone(),
        };
        flags.query()
    }
}
