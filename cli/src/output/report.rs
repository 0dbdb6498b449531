//! Contains the results of a command before they are formatted. Writes remarks about the results as sentences, and
//! computes the labels of exported counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use tallyfold::text::signed;
use tallyfold::{
    CollectOptions, Comparison, CountTable, Counts, Dimension, Frame, Metric, Reconciliation,
    Series, Timestamp, Window,
};
use tallyfold_export::Labels;

use super::safe::escaped;
use crate::arguments::query::{Query, Steps};
use crate::config::settings::{Cluster, Pair, label_pairs};
use crate::failure::{Exit, Failure, Result};

/// The results of a command by cluster, and what is missing. Results are counts by default.
#[derive(Debug)]
pub(crate) struct Report<A = Asked, F = Counted> {
    /// The query.
    pub(crate) asked: A,
    /// The results, in the order of the configuration.
    pub(crate) parts: Vec<Part<F>>,
    /// The clusters without any result.
    pub(crate) missing: Vec<Missing>,
    /// Whether rows show the cluster that they belong to.
    pub(crate) is_named: bool,
}

impl<A, F> Report<A, F> {
    /// Returns the beginning of a sentence about a cluster: the cluster's name, if clusters have names.
    pub(crate) fn place(&self, cluster: &str) -> String {
        match self.is_named {
            true => format!("{}: ", escaped(cluster)),
            false => String::new(),
        }
    }
}

impl Report<Asked, CountTable> {
    /// Returns the counts of a range, split by step. Without steps, each row counts the whole range.
    ///
    /// # Errors
    /// If a window crosses the edge of the range or of a step.
    pub(crate) fn counts(&self, range: Window, steps: Option<&Steps>) -> Result<Report> {
        let parts = self.parts.iter().map(|part| {
            let table = match range == self.asked.range {
                true => part.found.clone(),
                false => part.found.between(range)?,
            };
            Ok(Part {
                cluster: part.cluster.clone(),
                labels: part.labels.clone(),
                provisional: table.provisional(),
                reconciliation: table.reconciliation(),
                found: Counted::by_step(table, steps)?,
                gaps: part.gaps.iter().copied().filter(|gap| gap.overlaps(range)).collect(),
                failure: part.failure.clone(),
                is_unanswered: part.is_unanswered,
            })
        });
        Ok(Report {
            parts: parts.collect::<Result<_>>()?,
            asked: Asked { range, ..self.asked.clone() },
            missing: self.missing.clone(),
            is_named: self.is_named,
        })
    }
}

/// The query of each cluster.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) metric: Metric,
    /// The dimensions of the rows.
    pub(crate) by: Vec<Dimension>,
    /// The filters: the values that were kept, by dimension.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
    /// The time range.
    pub(crate) range: Window,
    /// The earlier time range that `range` is compared with, if any.
    pub(crate) before: Option<Window>,
    /// How long the counts of a window may still change after its end, in milliseconds.
    pub(crate) settle_ms: u64,
}

impl Asked {
    /// Describes a query for one range.
    pub(crate) fn new(
        metric: Metric,
        query: &Query,
        range: Window,
        options: &CollectOptions,
    ) -> Self {
        Self {
            metric,
            by: query.by.clone(),
            only: query.only.clone(),
            range,
            before: None,
            settle_ms: options.settle_ms,
        }
    }
}

/// The result for one cluster.
#[derive(Debug)]
pub(crate) struct Part<F = Counted> {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// The labels of the cluster in the configuration.
    pub(crate) labels: Vec<(String, String)>,
    /// The result.
    pub(crate) found: F,
    /// The parts of the time range that could not be read.
    pub(crate) gaps: Vec<Window>,
    /// Why the gaps could not be read, if the reason is known.
    pub(crate) failure: Option<Failure>,
    /// Whether the query returned nothing, so that this result comes from the data of earlier runs.
    pub(crate) is_unanswered: bool,
    /// The windows whose counts may still change.
    pub(crate) provisional: Vec<Window>,
    /// Whether the totals that the service reports are the sums of its counts. A series doesn't store this, so it is taken from
    /// the table before the split.
    pub(crate) reconciliation: Reconciliation,
}

impl<F> Part<F> {
    /// Creates a complete result for a cluster.
    pub(crate) fn of(cluster: &Cluster, found: F) -> Self {
        Self {
            cluster: cluster.name.clone(),
            labels: cluster.labels.clone(),
            found,
            gaps: Vec::new(),
            failure: None,
            is_unanswered: false,
            provisional: Vec::new(),
            reconciliation: Reconciliation::Unavailable,
        }
    }
}

impl Part {
    /// Creates the result of a cluster from its counts, with the gaps and the reason for them.
    pub(crate) fn new(
        cluster: &Cluster,
        counts: Counted,
        gaps: Vec<Window>,
        failure: Option<Failure>,
    ) -> Self {
        Self {
            provisional: counts.provisional(),
            gaps,
            failure: failure.map(|failure| failure.of_cluster(&cluster.name)),
            ..Self::of(cluster, counts)
        }
    }
}

/// Counts.
#[derive(Debug)]
pub(crate) enum Counted {
    /// By dimension.
    Table(CountTable),
    /// By window and dimension.
    Series(Arc<Series>),
    /// By dimension, before and after.
    Comparison(Arc<Comparison>),
}

impl Counted {
    /// Splits counts by step. Without steps, keeps the table.
    ///
    /// # Errors
    /// If a window crosses the edge of a step.
    pub(crate) fn by_step(table: CountTable, steps: Option<&Steps>) -> Result<Self> {
        Ok(match steps {
            None => Self::Table(table),
            Some(steps) => Self::Series(Arc::new(steps.split(&table)?)),
        })
    }

    /// Returns the interface that all kinds of counts share.
    pub(crate) fn frame(&self) -> &dyn Frame {
        match self {
            Self::Table(table) => table,
            Self::Series(series) => &**series,
            Self::Comparison(comparison) => &**comparison,
        }
    }

    /// Returns the counts of a row. For a comparison, these are the later counts.
    pub(crate) fn counts(&self, row: usize) -> Option<Counts> {
        match self {
            Self::Table(table) => table.row(row).map(|row| row.counts()),
            Self::Series(series) => series.row(row).map(|row| row.counts()),
            Self::Comparison(comparison) => comparison.row(row)?.after(),
        }
    }

    /// Returns the sums of all rows. For a comparison, these are the sums of the later counts.
    pub(crate) fn totals(&self) -> Counts {
        match self {
            Self::Table(table) => table.totals(),
            Self::Series(series) => series.totals(),
            Self::Comparison(comparison) => comparison.after_totals(),
        }
    }

    /// Returns the windows whose counts may still change. For a comparison, this is empty, because a comparison does
    /// not store them.
    pub(crate) fn provisional(&self) -> Vec<Window> {
        match self {
            Self::Table(table) => table.provisional(),
            Self::Series(series) => {
                let windows = series.windows().iter();
                let provisional = windows.filter(|window| window.provisional);
                provisional.map(|window| window.window).collect()
            }
            Self::Comparison(_) => Vec::new(),
        }
    }
}

/// A cluster without any counts.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// The labels of the cluster in the configuration.
    pub(crate) labels: Vec<(String, String)>,
    /// The reason.
    pub(crate) failure: Failure,
}

impl<A, F> Report<A, F> {
    /// Returns the exit code: the code of the first failure if every cluster failed, 6 if something is missing,
    /// otherwise 0.
    pub(crate) fn exit(&self) -> Exit {
        let unanswered = self.parts.iter().filter(|part| part.is_unanswered);
        let unanswered = unanswered.filter_map(|part| part.failure.as_ref());
        let failed = unanswered.chain(self.missing.iter().map(|missing| &missing.failure));
        let failed: Vec<&Failure> = failed.collect();
        let has_gaps = self.parts.iter().any(|part| !part.gaps.is_empty());
        match failed.first() {
            Some(first) if failed.len() == self.parts.len() + self.missing.len() => first.exit,
            None if !has_gaps => Exit::Fine,
            _ => Exit::Missing,
        }
    }
}

/// The mark of counts that may still change.
pub(crate) const PROVISIONAL: char = '*';

/// The mark of windows that the counts cover only partially.
pub(crate) const INCOMPLETE: char = '~';

/// Returns a sentence about which counts may still change, and until when.
pub(crate) fn provisional(report: &Report) -> Option<String> {
    let windows = report.parts.iter().flat_map(|part| part.provisional.iter().copied());
    let windows: Vec<Window> = windows.collect();
    let start = windows.iter().map(|window| window.start()).min()?;
    let end = windows.iter().map(|window| window.end()).max()?;
    let settled_ms = end.unix_ms().saturating_add_unsigned(report.asked.settle_ms);
    let until = match Timestamp::from_unix_ms(settled_ms) {
        Some(settled) => format!(" until {settled}"),
        None => String::new(),
    };
    Some(format!("counts of {start} to {end} may still change{until}"))
}

/// Returns the windows that the counts cover only partially, each once.
pub(crate) fn partial(report: &Report) -> Vec<Window> {
    let series = report.parts.iter().filter_map(|part| match &part.found {
        Counted::Series(series) => Some(series),
        _ => None,
    });
    let windows = series.flat_map(|series| series.windows());
    let partial = windows.filter(|of| !of.complete).map(|of| of.window);
    partial.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns a sentence that explains [`INCOMPLETE`], if the counts cover any window only partially.
pub(crate) fn incomplete(report: &Report) -> Option<String> {
    let some = !partial(report).is_empty();
    some.then(|| "only a part of this window was counted".to_owned())
}

/// Returns sentences about missing counts and wrong totals, cluster by cluster.
pub(crate) fn faults(report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    for part in &report.parts {
        let of = report.place(&part.cluster);
        if !part.gaps.is_empty() {
            faults.push(format!("{of}not counted: {}", spans(&part.gaps)));
        }
        faults.extend(contradiction(part.reconciliation).map(|text| format!("{of}{text}")));
    }
    for missing in &report.missing {
        let name = escaped(&missing.cluster);
        faults.push(format!("{name} is missing: {}", escaped(&missing.failure.text)));
    }
    faults
}

/// Returns a sentence about reported totals that differ from the sums of the counts; `None` if they agree or can't be compared.
pub(crate) fn contradiction(reconciliation: Reconciliation) -> Option<String> {
    let Reconciliation::Unbalanced { success, errors, filtered } = reconciliation else {
        return None;
    };
    let differences = [("success", success), ("errors", errors), ("filtered", filtered)];
    let differences = differences
        .iter()
        .filter(|(_, difference)| *difference != 0)
        .map(|(name, difference)| format!("{name} {}", signed(*difference)));
    Some(format!(
        "the totals that the service reports differ from the sums of its counts: {}",
        differences.collect::<Vec<_>>().join(", ")
    ))
}

/// Formats windows.
pub(crate) fn spans(windows: &[Window]) -> String {
    let spans = windows.iter().map(|window| span(*window));
    spans.collect::<Vec<_>>().join(", ")
}

/// Formats windows. Adjacent windows become one range.
pub(crate) fn ranges(windows: &[Window]) -> String {
    spans(&Window::joined(windows.to_vec()))
}

/// Formats a window.
pub(crate) fn span(window: Window) -> String {
    format!("{} to {}", window.start(), window.end())
}

/// Returns the labels of each part, as [`label_pairs`] defines them.
///
/// # Errors
/// For invalid labels, and for a label named `cluster` if clusters have names.
pub(crate) fn labels(report: &Report, given: &[String]) -> Result<Vec<Labels>> {
    let parts = pairs(report, given)?.into_iter();
    parts.map(|pairs| Ok(Labels::new(pairs)?)).collect()
}

/// Returns the labels of each part as names and values.
///
/// # Errors
/// Same as [`labels`].
pub(crate) fn pairs(report: &Report, given: &[String]) -> Result<Vec<Vec<Pair>>> {
    let parts = report.parts.iter();
    let clusters = parts.map(|part| (part.cluster.as_str(), part.labels.as_slice()));
    label_pairs(&clusters.collect::<Vec<_>>(), report.is_named, given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{ROWS, hour, report_of, table};

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn adjacent_windows_are_one_range() {
        let hours = |hours: &[usize]| hours.iter().copied().map(hour).collect::<Vec<_>>();
        assert_eq!(ranges(&[]), "");
        assert_eq!(
            ranges(&hours(&[1, 0, 2, 5])),
            spans(&[Window::new(hour(0).start(), hour(2).end()).unwrap(), hour(5)])
        );
    }

    fn clusters() -> Report {
        let mut report = report_of(vec![
            ("eu", Counted::Table(table(ROWS))),
            ("us", Counted::Table(table(ROWS))),
        ]);
        report.is_named = true;
        report.parts[0].labels = vec![pair("region", "west"), pair("env", "test")];
        report
    }

    #[test]
    fn all_clusters_have_the_same_label_names() {
        let labels = labels(&clusters(), &["env=production".to_owned()]).unwrap();
        let wanted = |cluster: &str, region: &str| {
            Labels::new([
                pair("cluster", cluster),
                pair("region", region),
                pair("env", "production"),
            ])
            .unwrap()
        };
        assert_eq!(labels, [wanted("eu", "west"), wanted("us", "")]);
    }

    #[test]
    fn wrong_labels_are_refused() {
        let report = clusters();
        for (label, part) in [
            ("env", "NAME=VALUE"),
            ("=x", "NAME=VALUE"),
            ("cluster=x", "the label cluster contains the cluster"),
            ("1a=x", "isn't a valid label name"),
        ] {
            let failure = labels(&report, &[label.to_owned()]).unwrap_err();
            assert!(failure.text.contains(part), "{}", failure.text);
        }
        let twice = ["a=b", "x=y", "a=c"].map(str::to_owned);
        let failure = labels(&report, &twice).unwrap_err();
        assert!(failure.text.contains("--label: the label a is given twice"), "{}", failure.text);
    }

    #[test]
    fn without_cluster_names_a_label_may_be_named_cluster() {
        let mut report = clusters();
        report.is_named = false;
        assert!(labels(&report, &["cluster=x".to_owned()]).is_ok());
    }
}
