//! Defines the output flags, and selects and orders rows.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tallyfold::{Frame, Key, RankBy};
use tallyfold_export::{ExportOptions, Format};

use super::report::{Counted, Report};
use crate::arguments::declared::{Declared, Flags};

/// How results are written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShowFlags {
    /// The format [default: table]
    ///
    /// csv, ndjson and parquet contain one row for each group, or one for each group and window if windows are kept separate.
    /// --order sets the order of the rows. Formats of other systems have their own order, and contain only counts that no
    /// longer change, unless you set --windows all.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, hide_default_value = true)]
    pub(crate) format: OutputFormat,
    /// Shows only this many groups, ranked by --order (by default errors)
    ///
    /// The groups of all clusters are ranked together. If windows are kept separate, a group is ranked by its sum and
    /// keeps all of its windows. Totals include all rows.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Orders rows by this count or rate, highest first; compare orders by the change of it
    #[arg(long, value_enum, value_name = "COUNT")]
    pub(crate) order: Option<OrderFlag>,
    /// Writes to this file instead of stdout (-); an existing file is replaced atomically
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A label for exported counts, such as env=production; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", hide_short_help = true)]
    pub(crate) labels: Vec<String>,
    /// The options of exports.
    #[command(flatten)]
    pub(crate) export: Declared<ExportFlags>,
}

impl ShowFlags {
    /// Returns whether the format writes only settled windows by default, and `--windows` isn't set. The formats of other systems
    /// have this default, because these systems store what they receive.
    pub(crate) fn writes_settled_only(&self) -> bool {
        let is_kept = self.format.exported().is_some_and(|of| !of.is_file());
        is_kept && self.export.given.get("windows").is_none()
    }
}

/// The formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns on a terminal. In a file or a pipe, a line for each row, with tabs between the cluster (if
    /// clusters have names), the dimensions, start and end (with --by-window), success, errors and filtered.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema). Counts are numbers; above 2^53 - 1, where many readers
    /// would round them, they are strings.
    Json,
    /// One JSON object for each row. Counts are as in json.
    Ndjson,
    /// Comma-separated values (RFC 4180); lines end with CR LF.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// OpenMetrics text, for Prometheus.
    Openmetrics,
    /// The OpenTelemetry protocol as JSON, one request per line.
    OtlpJson,
    /// InfluxDB's line protocol.
    Influx,
    /// DogStatsD datagrams, one per line.
    Dogstatsd,
}

impl OutputFormat {
    /// Returns the format of `tallyfold-export` that this format uses, if any.
    pub(crate) fn exported(self) -> Option<Format> {
        match self {
            Self::Table | Self::Json => None,
            Self::Ndjson => Some(Format::Ndjson),
            // Parquet has the same columns and rules as CSV.
            Self::Csv | Self::Parquet => Some(Format::Csv),
            Self::Openmetrics => Some(Format::OpenMetrics),
            Self::OtlpJson => Some(Format::OtlpJson),
            Self::Influx => Some(Format::Influx),
            Self::Dogstatsd => Some(Format::DogStatsD),
        }
    }
}

/// A count or rate to rank by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum OrderFlag {
    /// Events that were not sent due to an error.
    Errors,
    /// Events that were delivered.
    Success,
    /// Events that were filtered.
    Filtered,
    /// Events that were not delivered: errors and filtered together.
    Undelivered,
    /// The share of attempts that failed: errors / (success + errors).
    ErrorRate,
    /// The share of all events that were filtered.
    FilteredRate,
}

impl From<OrderFlag> for RankBy {
    fn from(flag: OrderFlag) -> Self {
        match flag {
            OrderFlag::Errors => Self::Errors,
            OrderFlag::Success => Self::Success,
            OrderFlag::Filtered => Self::Filtered,
            OrderFlag::Undelivered => Self::Undelivered,
            OrderFlag::ErrorRate => Self::ErrorRate,
            OrderFlag::FilteredRate => Self::FilteredRate,
        }
    }
}

/// The options of exports that are flags.
#[derive(Clone, Debug)]
pub(crate) struct ExportFlags;

impl Flags for ExportFlags {
    type Options = ExportOptions;

    const NAMES: &'static [&'static str] = &["name", "windows", "exact"];
    const HEADING: &'static str = "Output";
}

/// The position of a row in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The position of the part.
    pub(crate) part: usize,
    /// The position of the row in the part's counts.
    pub(crate) row: usize,
}

/// The rows that are written, in their order.
///
/// Without a ranking, rows are in the order of the core, cluster by cluster. With a ranking, the groups of all clusters are
/// ranked together. In a series, a group is ranked by its sum over all windows, so the top groups do not depend on the step.
/// Its windows stay together, in chronological order.
#[derive(Debug)]
pub(crate) struct Picked {
    /// The rows.
    pub(crate) lines: Vec<Line>,
    /// The number of groups that were left out because others rank higher.
    pub(crate) left_out: usize,
}

/// How rows are ranked, and how many groups are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranking {
    /// The count or rate to rank by; `None` keeps the core's order, which sorts by the values of the dimensions.
    pub(crate) by: Option<RankBy>,
    /// The maximum number of groups.
    pub(crate) top: Option<usize>,
}

impl Ranking {
    /// Returns the ranking that the flags select. `--top` without `--order` ranks by errors. Comparisons are always ranked: by
    /// errors, unless `--order` selects another count.
    pub(crate) fn of(report: &Report, flags: &ShowFlags) -> Self {
        let compares = report.asked.before.is_some();
        let by = flags.order.map(RankBy::from);
        let usual = (flags.top.is_some() || compares).then_some(RankBy::Errors);
        Self { by: by.or(usual), top: flags.top }
    }
}

const COUNTS: [RankBy; 3] = [RankBy::Success, RankBy::Errors, RankBy::Filtered];

/// A row with its sort keys.
struct Ranked {
    rank: (u128, u128),
    key: Key,
    line: Line,
}

impl Picked {
    /// Selects and orders the rows of a report.
    pub(crate) fn of(report: &Report, ranking: Ranking) -> Self {
        let frames = report.parts.iter().map(|part| {
            let is_series = matches!(part.found, Counted::Series(_));
            (part.found.frame(), is_series)
        });
        Self::of_frames(frames, ranking)
    }

    /// Selects and orders the rows of frames. The flag of each frame is true for a series.
    pub(crate) fn of_frames<'a>(
        frames: impl Iterator<Item = (&'a dyn Frame, bool)>,
        ranking: Ranking,
    ) -> Self {
        let parts = frames.enumerate();
        let Some(by) = ranking.by else {
            let lines = parts
                .flat_map(|(part, (frame, _))| (0..frame.len()).map(move |row| Line { part, row }));
            return Self { lines: lines.collect(), left_out: 0 };
        };
        let mut all: Vec<Ranked> = parts
            .flat_map(|(part, (frame, is_series))| ranked(part, frame, is_series, by))
            .collect();
        all.sort_unstable_by_key(|row| (Reverse(row.rank), row.line.part, row.key, row.line.row));
        let most = ranking.top.unwrap_or(usize::MAX);
        let mut lines = Vec::new();
        let mut groups = 0;
        let mut last = None;
        for row in &all {
            let group = Some((row.line.part, row.key));
            groups += usize::from(last != group);
            last = group;
            if groups <= most {
                lines.push(row.line);
            }
        }
        Self { lines, left_out: groups.saturating_sub(most) }
    }
}

fn ranked(part: usize, frame: &dyn Frame, is_series: bool, by: RankBy) -> Vec<Ranked> {
    let sums = is_series.then(|| sums(frame, by));
    let rows = (0..frame.len()).map(|row| {
        let key = key(frame, row);
        let rank = match &sums {
            Some(sums) => (sums.get(&key).copied().unwrap_or_default(), 0),
            None => (frame.rank(row, by), others(frame, row, by)),
        };
        let line = Line { part, row };
        Ranked { rank, key, line }
    });
    rows.collect()
}

/// Returns the rank of each group, by its sums over all windows.
fn sums(frame: &dyn Frame, by: RankBy) -> HashMap<Key, u128> {
    let mut sums: HashMap<Key, [u128; 3]> = HashMap::new();
    for row in 0..frame.len() {
        let sums = sums.entry(key(frame, row)).or_default();
        for (sum, count) in sums.iter_mut().zip(COUNTS) {
            *sum += frame.rank(row, count);
        }
    }
    let ranks = sums.into_iter().map(|(key, sums)| (key, by.rank(sums)));
    ranks.collect()
}

/// Breaks ties between rows of a comparison whose ranked count has changed equally: returns how much the other counts have
/// changed, up or down, in total. Returns 0 for other frames.
fn others(frame: &dyn Frame, row: usize, by: RankBy) -> u128 {
    if frame.delta(row).is_none() {
        return 0;
    }
    let others = COUNTS.iter().filter(|name| **name != by);
    others.map(|name| frame.rank(row, *name)).sum()
}

/// Returns the positions of a row's values in their dictionaries.
pub(crate) fn key(frame: &dyn Frame, row: usize) -> Key {
    let mut key = Key::default();
    for (id, ids) in key.iter_mut().zip(frame.keys().ids) {
        *id = ids[row];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{ROWS, report_of, series, table};

    fn picked(report: &Report, top: Option<usize>, by: RankBy) -> (Vec<(usize, usize)>, usize) {
        let ranking = Ranking { by: Some(by), top };
        let picked = Picked::of(report, ranking);
        let lines = picked.lines.iter().map(|line| (line.part, line.row));
        (lines.collect(), picked.left_out)
    }

    #[test]
    fn tables_are_ranked_as_in_the_core() {
        let table = table(ROWS);
        let core = table.top(2, RankBy::Errors);
        let report = report_of(vec![("eu", Counted::Table(table))]);
        let (lines, left_out) = picked(&report, Some(2), RankBy::Errors);
        assert_eq!(lines.iter().map(|line| line.1).collect::<Vec<_>>(), core);
        assert_eq!(left_out, ROWS.len() - 2);
    }

    #[test]
    fn the_groups_of_all_clusters_are_ranked_together() {
        let one = table(&[("a", 1, 5, 0), ("b", 1, 1, 0)]);
        let other = table(&[("a", 1, 3, 0), ("c", 1, 9, 0)]);
        let report = report_of(vec![("eu", Counted::Table(one)), ("us", Counted::Table(other))]);
        let (lines, left_out) = picked(&report, Some(3), RankBy::Errors);
        assert_eq!(lines, [(1, 1), (0, 0), (1, 0)]);
        assert_eq!(left_out, 1);
    }

    #[test]
    fn a_series_keeps_all_windows_of_the_top_groups() {
        // "a" has the highest single row, and "b" the highest sum.
        let series =
            series(&[&[("a", 1, 6, 0), ("b", 1, 4, 0)], &[("b", 1, 5, 0), ("c", 1, 1, 0)]]);
        let report = report_of(vec![("eu", Counted::Series(series))]);
        let (lines, left_out) = picked(&report, Some(1), RankBy::Errors);
        assert_eq!(lines, [(0, 1), (0, 2)]);
        assert_eq!(left_out, 2);
    }
}
