//! Series and comparisons as JSON. Nothing reads this JSON back; save the tables instead.

use serde::Serialize;

use super::change::Presence;
use super::metric::Metric;
use super::saved::{SavedCounts, SavedFilter, SavedRow};
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

#[derive(Serialize)]
pub(crate) struct SeriesReport<'a> {
    pub(crate) format: &'static str,
    pub(crate) metric: Option<Metric>,
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) filter: Vec<SavedFilter<'a>>,
    pub(crate) step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<&'a str>,
    pub(crate) totals: SavedCounts,
    pub(crate) windows: Vec<WindowReport<'a>>,
}

#[derive(Serialize)]
pub(crate) struct WindowReport<'a> {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) complete: bool,
    /// `true`, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provisional: Option<bool>,
    pub(crate) rows: Vec<SavedRow<'a>>,
}

#[derive(Serialize)]
pub(crate) struct ComparisonReport<'a> {
    pub(crate) format: &'static str,
    pub(crate) metric: Option<Metric>,
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) filter: Vec<SavedFilter<'a>>,
    pub(crate) before: SideReport,
    pub(crate) after: SideReport,
    pub(crate) delta: SavedCounts,
    pub(crate) rows: Vec<ChangeReport<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SideReport {
    pub(crate) coverage: Vec<Window>,
    pub(crate) totals: SavedCounts,
}

#[derive(Serialize)]
pub(crate) struct ChangeReport<'a> {
    pub(crate) values: Vec<&'a str>,
    pub(crate) presence: Presence,
    pub(crate) before: Option<SavedCounts>,
    pub(crate) after: Option<SavedCounts>,
    pub(crate) delta: SavedCounts,
}
