//! What series and comparisons are as JSON. Nothing reads it back: tables are what is saved.

use serde::Serialize;

use super::change::{Deltas, Presence};
use super::saved::{SavedCounts, SavedFilter};
use super::metric::Metric;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

#[derive(Serialize)]
pub(crate) struct SeriesReport<'a> {
    pub(crate) format: &'static str,
    pub(crate) metric: Option<Metric>,
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) filter: Vec<SavedFilter<'a>>,
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
    pub(crate) values: Vec<&'a str>,
    pub(crate) success: String,
    pub(crate) errors: String,
    pub(crate) filtered: String,
}

#[derive(Serialize)]
pub(crate) struct ComparisonReport<'a> {
    pub(crate) format: &'static str,
    pub(crate) metric: Option<Metric>,
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) filter: Vec<SavedFilter<'a>>,
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

impl From<Deltas> for SavedCounts<'_> {
    fn from(deltas: Deltas) -> Self {
        Self::new([deltas.success, deltas.errors, deltas.filtered])
    }
}
