//! `tallyfold compare`: compares the counts of a range with an earlier range.

use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, Args, ValueEnum};
use tallyfold::{CollectOptions, CountTable, Timestamp, Window, compare};

use crate::app::App;
use crate::arguments::declared::{Declared, with_paragraph};
use crate::arguments::query::{DAY_MS, MetricFlag, Query, QueryFlags, RangeFlags, ReadingNow};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};
use crate::host::ranges::read;
use crate::host::session::{Session, unix_ms};
use crate::output::report::{Asked, Counted, Part, Report, contradiction, spans};
use crate::output::show::{OutputFormat, ShowFlags};
use crate::output::write::{check, write};

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold compare
      The last hour next to the hour before it, by integration.
  tallyfold compare --since 24h --against last-week --by integration,reason --top 10
      The integrations and reasons that have changed most since the same hours of last week.
";

/// A paragraph about `--deadline` for the help of commands that compare two ranges.
pub(super) const DEADLINE: &str =
    "An incomplete range can't be compared, so a cluster with missing windows has no result.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("deadline_ms", |arg| with_paragraph(arg, DEADLINE)))]
#[command(mut_arg("format", of_comparison))]
pub(crate) struct CompareFlags {
    /// The earlier range to compare with
    #[arg(long, value_enum, default_value_t = Against::Previous, help_heading = "Range")]
    against: Against,
    /// The metric to count
    #[arg(long, value_enum, default_value_t = MetricFlag::Delivery, help_heading = "Query")]
    metric: MetricFlag,
    #[command(flatten)]
    range: RangeFlags,
    #[command(flatten)]
    query: QueryFlags,
    #[command(flatten)]
    reading: Declared<ReadingNow>,
    #[command(flatten)]
    pub(super) show: ShowFlags,
}

/// Accepts only the formats that can represent a comparison.
fn of_comparison(arg: Arg) -> Arg {
    use OutputFormat::{Csv, Json, Ndjson, Table};
    let values = [Table, Json, Ndjson, Csv].map(|format| {
        let value = format.to_possible_value().unwrap_or_default();
        match format {
            Table => value.help(
                "Aligned columns on a terminal. In a file or a pipe, a line for each row, with tabs between the columns",
            ),
            _ => value,
        }
    });
    let parser = PossibleValuesParser::new(values);
    arg.value_parser(parser.try_map(|name| OutputFormat::from_str(&name, false)))
        .long_help(
            "The format [default: table]\n\ncsv and ndjson contain one row for each group. --order sets the order of the rows.",
        )
}

/// An earlier range of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Against {
    /// The range of the same length just before.
    Previous,
    /// 24 hours earlier.
    Yesterday,
    /// Seven days earlier.
    LastWeek,
}

impl Against {
    /// Returns the earlier range.
    ///
    /// # Errors
    /// If the earlier range would begin before the year 0.
    pub(crate) fn of(self, range: Window) -> Result<Window> {
        let (start_ms, end_ms) = (range.start().unix_ms(), range.end().unix_ms());
        let earlier_ms = match self {
            Self::Previous => end_ms - start_ms,
            Self::Yesterday => DAY_MS,
            Self::LastWeek => 7 * DAY_MS,
        };
        let start = Timestamp::from_unix_ms(start_ms - earlier_ms);
        let end = Timestamp::from_unix_ms(end_ms - earlier_ms);
        let window = start.zip(end);
        let window = window.and_then(|(start, end)| Window::new(start, end).ok());
        window.ok_or_else(|| {
            Failure::usage("--against: the earlier range would begin before the year 0")
        })
    }
}

/// Compares the counts of two ranges, and writes the comparison.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, flags: &CompareFlags) -> Result<Exit> {
    let report = find(app, flags, &[]).await?;
    app.fail_missing(&report);
    write(&report, &flags.show, &app.stderr)?;
    Ok(report.exit())
}

/// Compares the counts of the clusters with these names, or of all clusters if `clusters` is empty.
///
/// # Errors
/// For flags and settings that can't be used, and for a name that no cluster has.
pub(crate) async fn find(app: &App, flags: &CompareFlags, clusters: &[String]) -> Result<Report> {
    let query = flags.query.query()?;
    let range = flags.range.window(unix_ms())?;
    let earlier = flags.against.of(range)?;
    let metric = flags.metric.into();
    let ranges = [
        query.collect(metric, earlier, &flags.reading.given)?,
        query.collect(metric, range, &flags.reading.given)?,
    ];
    let asked = Asked { before: Some(earlier), ..Asked::new(metric, &query, range, &ranges[1]) };
    check(app.loaded()?, &asked, &flags.show)?;
    app.report(asked, clusters, |cluster, session| {
        let (ranges, query) = (ranges.clone(), query.clone());
        async move {
            let [before, after] = read_both(app, (&cluster, &session), ranges, &query).await?;
            let provisional = [before.provisional(), after.provisional()].concat();
            let comparison = Counted::Comparison(Arc::new(compare(&before, &after)?));
            Ok(Part { provisional, ..Part::new(&cluster, comparison, Vec::new(), None) })
        }
    })
    .await
}

/// Reads two ranges of a cluster at the same time. Warns if reported totals differ from the sums of the counts.
///
/// # Errors
/// If a range can't be read as a whole, because the counts of an incomplete range can't be compared.
pub(super) async fn read_both(
    app: &App,
    (cluster, session): (&Cluster, &Session),
    [before, after]: [CollectOptions; 2],
    query: &Query,
) -> Result<[CountTable; 2]> {
    let (before, after) = tokio::join!(read(session, before, query), read(session, after, query));
    let ((before, _, failure), (after, _, other)) = (before?, after?);
    if let Some(failure) = failure.or(other) {
        return Err(failure);
    }
    for table in [&before, &after] {
        if let Some(text) = contradiction(table.reconciliation()) {
            let span = spans(&table.coverage());
            app.warn(&cluster.name, format_args!("{span}: {text}"));
        }
    }
    Ok([before, after])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_range_has_the_same_length() {
        let range = Window::parse("2026-03-01T09:00:00Z", "2026-03-01T11:30:00Z").unwrap();
        for (against, expected) in [
            (Against::Previous, "[2026-03-01T06:30:00Z, 2026-03-01T09:00:00Z)"),
            (Against::Yesterday, "[2026-02-28T09:00:00Z, 2026-02-28T11:30:00Z)"),
            (Against::LastWeek, "[2026-02-22T09:00:00Z, 2026-02-22T11:30:00Z)"),
        ] {
            assert_eq!(format!("{:?}", against.of(range).unwrap()), expected);
        }
        let first = Window::parse("0000-01-01T00:00:00Z", "0000-01-02T00:00:00Z").unwrap();
        assert!(Against::Yesterday.of(first).is_err() && Against::Previous.of(first).is_err());
    }
}
