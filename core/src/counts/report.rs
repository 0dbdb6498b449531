//! What series and comparisons are as JSON. Nothing reads it back: tables are what is saved.

use serde::Serialize;
use tallyfold_engine::Counts;

use super::change::{Deltas, Presence};
use super::saved::{SavedCounts, SavedFilter};
use super::subject::Subject;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

/// What the counts are of.
#[derive(Serialize)]
pub(crate) struct SubjectReport<'a> {
    metric: Option<&'static str>,
    dimensions: Vec<&'static str>,
    filter: Vec<SavedFilter<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SeriesReport<'a> {
    pub(crate) format: &'static str,
    #[serde(flatten)]
    pub(crate) subject: SubjectReport<'a>,
    pub(crate) step: Option<String>,
    pub(crate) totals: SavedCounts<'a>,
    pub(crate) windows: Vec<WindowReport<'a>>,
}

#[derive(Serialize)]
pub(crate) struct WindowReport<'a> {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) complete: bool,
    pub(crate) rows: Vec<RowReport<'a>>,
}

#[derive(Serialize)]
pub(crate) struct RowReport<'a> {
    values: Vec<&'a str>,
    #[serde(flatten)]
    counts: SavedCounts<'a>,
}

#[derive(Serialize)]
pub(crate) struct ComparisonReport<'a> {
    pub(crate) format: &'static str,
    #[serde(flatten)]
    pub(crate) subject: SubjectReport<'a>,
    pub(crate) before: SideReport<'a>,
    pub(crate) after: SideReport<'a>,
    pub(crate) delta: SavedCounts<'a>,
    pub(crate) rows: Vec<ChangeReport<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SideReport<'a> {
    pub(crate) coverage: Vec<Window>,
    pub(crate) totals: SavedCounts<'a>,
}

#[derive(Serialize)]
pub(crate) struct ChangeReport<'a> {
    pub(crate) values: Vec<&'a str>,
    pub(crate) presence: Presence,
    pub(crate) before: Option<SavedCounts<'a>>,
    pub(crate) after: Option<SavedCounts<'a>>,
    pub(crate) delta: SavedCounts<'a>,
}

/// The report as text.
pub(crate) fn json(report: &impl Serialize) -> String {
    // Only strings and booleans are written, which can't fail.
    serde_json::to_string(report).unwrap_or_default()
}

impl<'a> RowReport<'a> {
    pub(crate) fn new(values: Vec<&'a str>, counts: Counts) -> Self {
        let counts = counts.into();
        Self { values, counts }
    }
}

impl<'a> From<&'a Subject> for SubjectReport<'a> {
    fn from(subject: &'a Subject) -> Self {
        Self {
            metric: subject.metric.map(super::metric::Metric::as_str),
            dimensions: subject.dimensions.names(),
            filter: subject.selection.0.iter().map(SavedFilter::from).collect(),
        }
    }
}

impl From<Deltas> for SavedCounts<'_> {
    fn from(deltas: Deltas) -> Self {
        Self::new([deltas.success, deltas.errors, deltas.filtered])
    }
}
