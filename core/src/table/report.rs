//! What is made of tables, as JSON: one way, for whoever shows it.

use serde::Serialize;

use super::saved::{SavedCounts, SavedFilter};
use super::{Series, SeriesRow};
use crate::dimension::Metric;

#[derive(Serialize)]
struct SeriesReport<'a> {
    format: &'static str,
    metric: Option<&'static str>,
    dimensions: Vec<&'static str>,
    filter: Vec<SavedFilter>,
    step: Option<String>,
    totals: SavedCounts,
    windows: Vec<WindowReport<'a>>,
}

#[derive(Serialize)]
struct WindowReport<'a> {
    start: String,
    end: String,
    complete: bool,
    rows: Vec<RowReport<'a>>,
}

#[derive(Serialize)]
struct RowReport<'a> {
    values: Vec<&'a str>,
    success: String,
    errors: String,
    filtered: String,
}

impl Series {
    /// The series as JSON with every count as a string of digits, window by window. The same
    /// series gives the same bytes, in every language. Nothing reads it back: save the table.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut rows = self.rows().peekable();
        let windows = (0..).zip(self.windows()).map(|(id, of)| WindowReport {
            start: of.window.start().to_string(),
            end: of.window.end().to_string(),
            complete: of.complete,
            rows: std::iter::from_fn(|| rows.next_if(|row| self.window_ids()[row.index()] == id))
                .map(RowReport::from)
                .collect(),
        });
        let report = SeriesReport {
            format: "tallyfold-series/1",
            metric: self.metric().map(Metric::as_str),
            dimensions: self.dimensions().names(),
            filter: self.selection.0.iter().map(SavedFilter::from).collect(),
            step: self.step().map(|step| step.to_string()),
            totals: self.totals().into(),
            windows: windows.collect(),
        };
        // Only strings and booleans are written, which can't fail.
        serde_json::to_string(&report).unwrap_or_default()
    }
}

impl<'a> From<SeriesRow<'a>> for RowReport<'a> {
    fn from(row: SeriesRow<'a>) -> Self {
        let SavedCounts {
            success,
            errors,
            filtered,
        } = row.counts().into();
        Self {
            values: row.values().collect(),
            success,
            errors,
            filtered,
        }
    }
}
