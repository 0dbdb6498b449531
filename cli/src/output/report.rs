//! What a command has found, before it is written in any format.

use std::sync::Arc;

use tallyfold::{
    CollectOptions, Comparison, CountTable, Counts, Frame, Metric, Series, TimeStep, Window,
};

use crate::arguments::query::Query;
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};

/// Counts of one or more clusters, and what is missing.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was asked.
    pub(crate) asked: Asked,
    /// What was found, in the order of the configuration.
    pub(crate) parts: Vec<Part>,
    /// The clusters of which nothing is known.
    pub(crate) missing: Vec<Missing>,
    /// Whether rows say which cluster they are of.
    pub(crate) is_named: bool,
}

/// What was asked of each cluster.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Which counts.
    pub(crate) metric: Metric,
    /// The dimensions that they are shown by.
    pub(crate) by: Vec<String>,
    /// The values that were kept, by dimension.
    pub(crate) only: Vec<(String, Vec<String>)>,
    /// The time.
    pub(crate) range: Window,
    /// The time that it is compared with.
    pub(crate) before: Option<Window>,
    /// How long after its end the counts of a window may still change, in milliseconds.
    pub(crate) settle_ms: u64,
}

impl Asked {
    /// A query of a range.
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

/// The counts of one cluster.
#[derive(Debug)]
pub(crate) struct Part {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Labels of exported counts.
    pub(crate) labels: Vec<(String, String)>,
    /// The counts.
    pub(crate) counts: Counted,
    /// The time that was asked for and could not be read.
    pub(crate) gaps: Vec<Window>,
    /// Why not.
    pub(crate) failure: Option<Failure>,
    /// The windows whose counts may still change.
    pub(crate) provisional: Vec<Window>,
}

impl Part {
    /// The counts of a cluster, with the time that is missing and why.
    pub(crate) fn new(
        cluster: &Cluster,
        counts: Counted,
        gaps: Vec<Window>,
        failure: Option<Failure>,
    ) -> Self {
        Self {
            cluster: cluster.name.clone(),
            labels: cluster.labels.clone(),
            provisional: counts.provisional(),
            counts,
            gaps,
            failure: failure.map(|failure| failure.of_cluster(&cluster.name)),
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
    /// Before and after.
    Comparison(Arc<Comparison>),
}

impl Counted {
    /// Counts by windows of a step, or their sum.
    ///
    /// # Errors
    /// If a window crosses the edge of a step.
    pub(crate) fn by_step(table: CountTable, step: Option<TimeStep>) -> Result<Self> {
        Ok(match step {
            None => Self::Table(table),
            Some(step) => Self::Series(Arc::new(table.by_window(Some(step))?)),
        })
    }

    /// What all kinds of counts have in common.
    pub(crate) fn frame(&self) -> &dyn Frame {
        match self {
            Self::Table(table) => table,
            Self::Series(series) => &**series,
            Self::Comparison(comparison) => &**comparison,
        }
    }

    /// The sum of all rows; of a comparison, of those after.
    pub(crate) fn totals(&self) -> Counts {
        match self {
            Self::Table(table) => table.totals(),
            Self::Series(series) => series.totals(),
            Self::Comparison(comparison) => comparison.after_totals(),
        }
    }

    /// The windows whose counts may still change. (A comparison does not know; who compares asks its tables.)
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

/// A cluster of which nothing is known.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Why.
    pub(crate) failure: Failure,
}

impl Report {
    /// How the command ends: with 6 if anything is missing beside what was found, with the failure's own code if nothing was found.
    pub(crate) fn exit(&self) -> Exit {
        let has_gaps = self.parts.iter().any(|part| !part.gaps.is_empty());
        match self.missing.first() {
            Some(missing) if self.parts.is_empty() => missing.failure.exit,
            Some(_) => Exit::Missing,
            None if has_gaps => Exit::Missing,
            None => Exit::Fine,
        }
    }
}
