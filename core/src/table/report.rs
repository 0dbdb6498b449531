//! What is made of tables, as JSON: one way, for whoever shows it.

use serde::Serialize;

use super::saved::{SavedCounts, SavedFilter};
use super::{Comparison, ComparisonRow, Counts, Deltas, Series, SeriesRow};
use crate::dimension::Metric;
use crate::window::Window;

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

#[derive(Serialize)]
struct ComparisonReport<'a> {
    format: &'static str,
    metric: Option<&'static str>,
    dimensions: Vec<&'static str>,
    filter: Vec<SavedFilter>,
    before: SideReport,
    after: SideReport,
    delta: SavedCounts,
    rows: Vec<ChangeReport<'a>>,
}

#[derive(Serialize)]
struct SideReport {
    coverage: Vec<CoverageReport>,
    totals: SavedCounts,
}

#[derive(Serialize)]
struct CoverageReport {
    start: String,
    end: String,
}

#[derive(Serialize)]
struct ChangeReport<'a> {
    values: Vec<&'a str>,
    presence: &'static str,
    before: Option<SavedCounts>,
    after: Option<SavedCounts>,
    delta: SavedCounts,
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

impl Comparison {
    /// The comparison as JSON with every count as a string of digits, and every delta as one with
    /// a `-` where it is negative. Shares are left to the reader, who has the exact deltas. The same
    /// comparison gives the same bytes, in every language. Nothing reads it back: save the tables.
    #[must_use]
    pub fn to_json(&self) -> String {
        let report = ComparisonReport {
            format: "tallyfold-comparison/1",
            metric: self.metric().map(Metric::as_str),
            dimensions: self.dimensions().names(),
            filter: self.selection.0.iter().map(SavedFilter::from).collect(),
            before: side(self.before_coverage(), self.before_totals()),
            after: side(self.after_coverage(), self.after_totals()),
            delta: self.total_delta().into(),
            rows: self.rows().map(ChangeReport::from).collect(),
        };
        // Only strings are written, which can't fail.
        serde_json::to_string(&report).unwrap_or_default()
    }
}

fn side(coverage: &[Window], totals: Counts) -> SideReport {
    let edges = |window: &Window| CoverageReport {
        start: window.start().to_string(),
        end: window.end().to_string(),
    };
    SideReport {
        coverage: coverage.iter().map(edges).collect(),
        totals: totals.into(),
    }
}

impl<'a> From<ComparisonRow<'a>> for ChangeReport<'a> {
    fn from(row: ComparisonRow<'a>) -> Self {
        Self {
            values: row.values().collect(),
            presence: row.presence().as_str(),
            before: row.before().map(SavedCounts::from),
            after: row.after().map(SavedCounts::from),
            delta: row.delta().into(),
        }
    }
}

impl From<Deltas> for SavedCounts {
    fn from(deltas: Deltas) -> Self {
        Self {
            success: deltas.success.to_string(),
            errors: deltas.errors.to_string(),
            filtered: deltas.filtered.to_string(),
        }
    }
}
