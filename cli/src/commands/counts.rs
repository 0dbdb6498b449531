//! `tallyfold delivery` and `tallyfold ingestion`: write the counts of a range. With `--fail-above`, the exit code is 1 if too
//! many events failed, or if there were no events.

use clap::{Arg, Args};
use tallyfold::text::Fraction;
use tallyfold::{Counts, Frame, Keep, Metric};

use crate::app::App;
use crate::arguments::declared::{Declared, Suggested, with_paragraph};
use crate::arguments::query::{QueryFlags, RangeFlags, ReadingNow, StepFlags, dimensions};
use crate::failure::{Exit, Failure, Result};
use crate::host::ranges::read;
use crate::host::session::unix_ms;
use crate::output::report::{Asked, Counted, Part, Report};
use crate::output::safe::escaped;
use crate::output::show::ShowFlags;
use crate::output::write::{check, write};
use crate::stderr::Stderr;

/// A paragraph about `--to` for the help of these commands only.
const TO: &str = "With --format openmetrics, otlp-json, influx or dogstatsd, and without --windows, the default is the last minute \
     whose counts no longer change.";

/// A paragraph about `--deadline` for the help of these commands only.
const DEADLINE: &str = "The command prints the counts that it has read by then, and exits with 6. If it has read none, it exits with 4.";

/// Flags of commands that show the counts of a range.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("to", |arg| with_paragraph(arg, TO)))]
#[command(mut_arg("deadline_ms", |arg| with_paragraph(arg, DEADLINE)))]
pub(crate) struct CountFlags {
    #[command(flatten)]
    pub(crate) range: RangeFlags,
    #[command(flatten)]
    pub(crate) query: QueryFlags,
    #[command(flatten)]
    pub(crate) step: StepFlags,
    #[command(flatten)]
    pub(crate) reading: Declared<ReadingNow>,
    #[command(flatten)]
    pub(crate) verdict: VerdictFlags,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
}

/// The examples at the start of the help of `delivery`.
pub(crate) const DELIVERY_EXAMPLES: &str = "\
Examples:
  tallyfold delivery
      The last hour by integration, as a table.
  tallyfold delivery --since 24h --by integration,event_name --top 10
      Where the most events were lost in the last day: the integrations and event names with the most errors.
  tallyfold delivery --since 24h --by reason,integration --order filtered --top 10
      Which filters dropped the most events, and for which integrations.
  tallyfold delivery --since 7d --by-window 1d --format csv > week.csv
      One row for each integration and day.
  tallyfold delivery --since 15m --fail-above 5% --quiet > /dev/null
      A health job: exits with 1 if more than 5% of an integration's attempts failed, and prints which integrations.
";

/// The examples at the start of the help of `ingestion`.
pub(crate) const INGESTION_EXAMPLES: &str = "\
Examples:
  tallyfold ingestion --since 24h --by write_key
      What each source has sent in the last day.
  tallyfold ingestion --since 1h --by event_name --format json
";

/// Returns the flag `--by` of `ingestion`, which has no reasons.
pub(crate) fn of_ingestion(by: Arg) -> Arg {
    let known = || {
        let known = dimensions().into_iter();
        known.filter(|name| name != "reason").collect()
    };
    by.value_parser(Suggested(known))
        .help("The dimensions to count by: any of write_key, event_name, integration")
        .long_help(
            "The dimensions to count by: any of write_key, event_name, integration\n\nThe output keeps their order.",
        )
}

/// Runs `delivery` or `ingestion`, depending on the metric.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, metric: Metric, flags: &CountFlags) -> Result<Exit> {
    let limit = flags.verdict.limit()?;
    let report = find(app, metric, flags, &[]).await?;
    app.fail_missing(&report);
    write(&report, &flags.show, &app.stderr)?;
    match limit.is_some_and(|limit| limit.judge(&report, &app.stderr)) {
        true => Ok(Exit::Unhealthy),
        false => Ok(report.exit()),
    }
}

/// Reads the counts of the clusters with these names, or of all clusters if `clusters` is empty.
///
/// # Errors
/// For flags and settings that can't be used, and for a name that no cluster has.
pub(crate) async fn find(
    app: &App,
    metric: Metric,
    flags: &CountFlags,
    clusters: &[String],
) -> Result<Report> {
    let query = flags.query.query()?;
    let mut range = flags.range.window(unix_ms())?;
    let mut options = query.collect(metric, range, &flags.reading.given)?;
    if flags.show.writes_settled_only() && flags.range.to.is_none() {
        // This format contains only settled windows, and the newest windows of the range are not settled. So end the range
        // earlier. With `--since`, the range keeps its length; with `--from`, it keeps its start.
        let settled_ms = i64::try_from(options.settle_ms).unwrap_or(i64::MAX);
        range = flags.range.window(unix_ms().saturating_sub(settled_ms))?;
        options = query.collect(metric, range, &flags.reading.given)?;
    }
    let steps = flags.step.of(range)?;
    options.keep = Keep::Total;
    if let Some(steps) = &steps {
        steps.fit(&mut options)?;
        options.keep = Keep::Step(steps.unit());
    }
    let asked = Asked::new(metric, &query, range, &options);
    check(app.loaded()?, &asked, &flags.show)?;
    app.report(asked, clusters, |cluster, session| {
        let (options, query, steps) = (options.clone(), query.clone(), steps.as_ref());
        async move {
            let (table, gaps, failure) = read(&session, options, &query).await?;
            let reconciliation = table.reconciliation();
            let counts = Counted::by_step(table, steps)?;
            Ok(Part { reconciliation, ..Part::new(&cluster, counts, gaps, failure) })
        }
    })
    .await
}

/// Flags of commands that can judge their counts.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Health")]
pub(crate) struct VerdictFlags {
    /// Exits with 1 if more than this share of a row's attempts failed: 5%, 0.5%
    ///
    /// Attempts are delivered and failed events; filtered events do not count. Rows with fewer attempts than --fewest are not
    /// judged. The command prints the rows above the limit to stderr, even with --quiet. It also exits with 1 if a cluster has no
    /// events.
    #[arg(long, value_name = "SHARE")]
    pub(crate) fail_above: Option<String>,
    /// Judges only rows with at least this many attempts
    #[arg(long, value_name = "N", default_value_t = 100, requires = "fail_above")]
    pub(crate) fewest: u64,
}

/// The limits of `--fail-above` and `--fewest`.
#[derive(Clone, Copy, Debug)]
struct Limit {
    share: Fraction,
    fewest: u64,
}

impl VerdictFlags {
    /// Returns the limit; `None` without `--fail-above`.
    ///
    /// # Errors
    /// For a text that is not a share.
    fn limit(&self) -> Result<Option<Limit>> {
        let Some(text) = &self.fail_above else {
            return Ok(None);
        };
        let wanted =
            || Failure::usage(format!("--fail-above {text}: want a share such as 5% or 0.5%"));
        let share = Fraction::share(text).ok_or_else(wanted)?;
        Ok(Some(Limit { share, fewest: self.fewest }))
    }
}

impl Limit {
    /// Writes the rows above the limit. Returns true if there is such a row, or if a cluster has no events.
    fn judge(self, report: &Report, stderr: &Stderr) -> bool {
        let mut has_failed = false;
        for part in &report.parts {
            let place = report.place(&part.cluster);
            if rows(&part.found).any(|(_, counts)| self.is_judged(counts)) {
                continue;
            }
            if part.found.totals() == Counts::default() {
                stderr.error(format_args!("{place}there are no events to judge"));
                has_failed = true;
            } else {
                let fewest = self.fewest;
                stderr.warning(format_args!(
                    "{place}no row has at least {fewest} attempts, so none was judged"
                ));
            }
        }
        for part in &report.parts {
            for (row, counts) in rows(&part.found) {
                if self.has_failed(counts) {
                    let text = failed_row(&part.found, row, counts);
                    stderr.error(format_args!("{}{text}", report.place(&part.cluster)));
                    has_failed = true;
                }
            }
        }
        has_failed
    }

    fn is_judged(self, counts: Counts) -> bool {
        attempts_of(counts) >= u128::from(self.fewest.max(1))
    }

    fn has_failed(self, counts: Counts) -> bool {
        self.is_judged(counts) && self.share.is_below(counts.errors, attempts_of(counts))
    }
}

fn attempts_of(counts: Counts) -> u128 {
    u128::from(counts.success) + u128::from(counts.errors)
}

/// Returns the position and the counts of each row.
fn rows(found: &Counted) -> impl Iterator<Item = (usize, Counts)> {
    (0..found.frame().len()).filter_map(|row| Some((row, found.counts(row)?)))
}

/// Describes a row above the limit.
fn failed_row(found: &Counted, row: usize, counts: Counts) -> String {
    let values = found.frame().keys().values(row);
    let values: Vec<&str> =
        values.map(|value| if value.is_empty() { "(none)" } else { value }).collect();
    let place = match found {
        Counted::Series(series) => series.row(row).map(|row| format!(" in {:?}", row.window())),
        _ => None,
    };
    let attempts = attempts_of(counts);
    let name = match values.is_empty() {
        true => "all".to_owned(),
        false => escaped(&values.join(", ")),
    };
    format!("{name}: {} of {attempts} attempts failed{}", counts.errors, place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{report_of, table};

    #[test]
    fn a_row_fails_above_the_limit_but_not_at_the_limit() {
        let limit = Limit { share: Fraction::share("5%").unwrap(), fewest: 100 };
        let counts = |success, errors| Counts { success, errors, filtered: 1_000_000 };
        assert!(!limit.has_failed(counts(95, 5)));
        assert!(limit.has_failed(counts(94, 6)));
        assert!(!limit.has_failed(counts(0, 99)));
        assert!(limit.has_failed(counts(u64::MAX, u64::MAX)));
        let none = Limit { share: Fraction::share("0%").unwrap(), fewest: 0 };
        assert!(!none.has_failed(counts(0, 0)) && none.has_failed(counts(1_000_000, 1)));
    }

    #[test]
    fn rows_without_events_are_no_events() {
        let limit = Limit { share: Fraction::share("5%").unwrap(), fewest: 100 };
        let stderr = Stderr::new(true, false);
        for (filtered, has_failed) in [(0, true), (1, false)] {
            let rows = [("Warehouse", 0, 0, 0), ("Webhooks", 0, 0, filtered)];
            let report = report_of(vec![("default", Counted::Table(table(&rows)))]);
            assert_eq!(limit.judge(&report, &stderr), has_failed);
        }
    }
}
