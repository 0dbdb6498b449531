//! A table as JSON; [`loaded`](super::loaded) reads it back.

use std::borrow::Cow;

use serde::Serialize;
use tallyfold_engine::Counts;

use super::dimension::Dimension;
use super::part::Part;
use super::subject::Subject;

/// What the JSON says it is; a change that old readers can't read gets a new number.
pub(crate) const FORMAT: &str = "tallyfold-table/1";

/// A table as it is saved, with its windows as they are or as JSON.
#[derive(Serialize)]
pub(crate) struct SavedTable<'a, W> {
    format: Cow<'a, str>,
    metric: Option<Cow<'a, str>>,
    dimensions: Vec<Cow<'a, str>>,
    filter: Vec<SavedFilter<'a>>,
    totals: SavedCounts<'a>,
    windows: Vec<W>,
}

/// The values that one dimension was filtered by.
#[derive(Serialize)]
pub(crate) struct SavedFilter<'a> {
    dimension: Cow<'a, str>,
    values: Vec<Cow<'a, str>>,
}

/// What one response said.
#[derive(Serialize)]
pub(crate) struct SavedWindow<'a> {
    start: Cow<'a, str>,
    end: Cow<'a, str>,
    reported: Option<SavedCounts<'a>>,
    notes: SavedNotes,
    rows: Vec<SavedRow<'a>>,
}

#[derive(Serialize)]
struct SavedNotes {
    repeated_combinations: u64,
    null_dimensions: u64,
}

/// Counts as strings of digits, as no JSON number holds them exactly.
#[derive(Serialize)]
pub(crate) struct SavedCounts<'a> {
    success: Cow<'a, str>,
    errors: Cow<'a, str>,
    filtered: Cow<'a, str>,
}

/// One row: its dimension values in the table's order, and its counts.
#[derive(Serialize)]
struct SavedRow<'a> {
    values: Vec<Cow<'a, str>>,
    success: Cow<'a, str>,
    errors: Cow<'a, str>,
    filtered: Cow<'a, str>,
}

/// The JSON of a table.
pub(crate) fn write(subject: &Subject, totals: Counts, parts: &[Part]) -> String {
    // Only strings and small integers are written, which can't fail.
    let windows: Vec<SavedWindow<'_>> = parts.iter().map(SavedWindow::from).collect();
    serde_json::to_string(&SavedTable::new(subject, totals, windows)).unwrap_or_default()
}

impl<'a, W> SavedTable<'a, W> {
    pub(crate) fn new(subject: &'a Subject, totals: Counts, windows: Vec<W>) -> Self {
        Self {
            format: FORMAT.into(),
            metric: subject.metric.map(|metric| metric.as_str().into()),
            dimensions: subject
                .dimensions
                .names()
                .into_iter()
                .map(Cow::from)
                .collect(),
            filter: subject.selection.0.iter().map(SavedFilter::from).collect(),
            totals: totals.into(),
            windows,
        }
    }
}

impl SavedCounts<'_> {
    /// Numbers as digits, with a `-` before those below 0.
    pub(crate) fn new<N: ToString>(counts: [N; 3]) -> Self {
        let [success, errors, filtered] = counts.map(|count| Cow::Owned(count.to_string()));
        Self {
            success,
            errors,
            filtered,
        }
    }
}

impl<'a> From<&'a Part> for SavedWindow<'a> {
    fn from(part: &'a Part) -> Self {
        let rows = &*part.rows;
        let row = |row: usize| {
            let SavedCounts {
                success,
                errors,
                filtered,
            } = rows.counts(row).into();
            let value = |column: usize| rows.value(row, column).into();
            SavedRow {
                values: (0..rows.width()).map(value).collect(),
                success,
                errors,
                filtered,
            }
        };
        Self {
            start: Cow::Owned(part.window.start().to_string()),
            end: Cow::Owned(part.window.end().to_string()),
            reported: part.reported.map(SavedCounts::from),
            notes: SavedNotes {
                repeated_combinations: part.notes.repeated_combinations,
                null_dimensions: part.notes.null_dimensions,
            },
            rows: (0..rows.len()).map(row).collect(),
        }
    }
}

impl<'a> From<&'a (Dimension, Vec<String>)> for SavedFilter<'a> {
    fn from((dimension, values): &'a (Dimension, Vec<String>)) -> Self {
        Self {
            dimension: dimension.as_str().into(),
            values: values.iter().map(|value| value.as_str().into()).collect(),
        }
    }
}

impl From<Counts> for SavedCounts<'_> {
    fn from(counts: Counts) -> Self {
        Self::new(counts.each())
    }
}
