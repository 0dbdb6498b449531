//! A table as JSON, and back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tallyfold_engine::{Refused, Rows};

use super::selection::Selection;
use super::{CountTable, Counts, Notes, Part, parse_count, refusal};
use crate::dimension::{Dimension, Dimensions, Metric};
use crate::error::{Code, Error, Result};
use crate::window::Window;

/// What the JSON says it is; a change that old readers can't read gets a new number.
const FORMAT: &str = "tallyfold-table/1";

/// What stands before the windows.
#[derive(Serialize)]
struct SavedHead {
    format: &'static str,
    metric: Option<&'static str>,
    dimensions: Vec<&'static str>,
    filter: Vec<SavedFilter>,
    totals: SavedCounts,
}

/// What is read, of which nothing has been checked yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTable {
    format: String,
    metric: Option<String>,
    dimensions: Vec<String>,
    filter: Vec<SavedFilter>,
    totals: SavedCounts,
    windows: Vec<SavedWindow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedWindow {
    start: String,
    end: String,
    reported: Option<SavedCounts>,
    notes: SavedNotes,
    rows: Vec<SavedRow>,
}

/// The values that one dimension was filtered by.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedFilter {
    dimension: String,
    values: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedNotes {
    repeated_combinations: u64,
    null_dimensions: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedCounts {
    pub(super) success: String,
    pub(super) errors: String,
    pub(super) filtered: String,
}

/// One row: its dimension values in the table's order, and its counts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedRow {
    values: Vec<String>,
    success: String,
    errors: String,
    filtered: String,
}

impl CountTable {
    /// The table as JSON with every count as a string of digits. The same table gives the same
    /// bytes, in every language.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_json_of(self.totals(), &self.save_windows())
    }

    /// The JSON of a table like this one with other windows: the sum of all of them, and what
    /// [`CountTable::save_windows`] made of each, in the order of time and with commas between.
    pub(crate) fn to_json_of(&self, totals: Counts, windows: &str) -> String {
        let head = SavedHead {
            format: FORMAT,
            metric: self.metric.map(Metric::as_str),
            dimensions: self.dimensions.names(),
            filter: self.selection.0.iter().map(SavedFilter::from).collect(),
            totals: totals.into(),
        };
        // Only strings and small integers are written, which can't fail.
        let mut json = serde_json::to_string(&head).unwrap_or_default();
        json.pop();
        json.push_str(",\"windows\":[");
        json.push_str(windows);
        json.push_str("]}");
        json
    }

    /// The windows as they stand in the table's JSON, with commas between.
    pub(crate) fn save_windows(&self) -> String {
        let windows: Vec<_> = self.parts.iter().map(|part| self.save_part(part)).collect();
        let json = serde_json::to_string(&windows).unwrap_or_default();
        json.trim_matches(['[', ']']).to_owned()
    }

    fn save_part(&self, part: &Part) -> SavedWindow {
        let rows = &part.rows;
        let row = |row: usize| {
            let SavedCounts {
                success,
                errors,
                filtered,
            } = rows.counts(row).into();
            let value = |column: usize| rows.value(row, column).to_owned();
            let values = (0..self.dimensions.len()).map(value).collect();
            SavedRow {
                values,
                success,
                errors,
                filtered,
            }
        };
        SavedWindow {
            start: part.window.start().to_string(),
            end: part.window.end().to_string(),
            reported: part.reported.map(SavedCounts::from),
            notes: SavedNotes {
                repeated_combinations: part.notes.repeated_combinations,
                null_dimensions: part.notes.null_dimensions,
            },
            rows: (0..rows.len()).map(row).collect(),
        }
    }

    /// Reads what [`CountTable::to_json`] wrote, and checks that it still adds up.
    ///
    /// # Errors
    /// `invalid_table`, with the JSON path or the byte offset.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let saved: SavedTable = serde_json::from_slice(json).map_err(|error| {
            let offset = offset_of(json, error.line(), error.column());
            let problem: String = error.to_string().chars().take(120).collect();
            invalid(format!("this is no saved table: {problem}")).with_offset(offset)
        })?;
        if saved.format != FORMAT {
            return Err(invalid_at("$.format", format!("want {FORMAT}")));
        }
        let metric = saved.metric.as_deref().map(Metric::from_name).transpose();
        let metric = metric.map_err(|error| invalid_at("$.metric", error.message().to_owned()))?;
        let dimensions = Dimensions::parse("dimensions", &saved.dimensions)
            .map_err(|error| invalid_at("$.dimensions", error.message().to_owned()))?;
        metric
            .map_or(Ok(()), |metric| dimensions.check_available(metric))
            .map_err(|error| invalid_at("$.dimensions", error.message().to_owned()))?;
        let selection = load_filter(&saved.filter)?;
        let mut parts = Vec::with_capacity(saved.windows.len());
        for (index, window) in saved.windows.iter().enumerate() {
            let part = load_part(window, dimensions.len(), &format!("$.windows[{index}]"))?;
            let before = parts.last().map(|part: &Part| part.window);
            if before.is_some_and(|before| before.end() > part.window.start()) {
                let message = "a window starts before the one above it has ended";
                return Err(invalid_at(
                    &format!("$.windows[{index}].start"),
                    message.to_owned(),
                ));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(invalid_at(
                "$.windows",
                "a table covers at least one window".to_owned(),
            ));
        }
        let table = Self::of_parts(dimensions, metric, parts, selection)
            .map_err(|error| invalid_at("$.windows", error.message().to_owned()))?;
        if table.totals() != load_counts(&saved.totals, "$.totals")? {
            let message = "the totals are not the sums of the rows: the table was changed";
            return Err(invalid_at("$.totals", message.to_owned()));
        }
        Ok(table)
    }
}

/// Takes a filter as it is written: dimensions in their order, values sorted, none twice.
fn load_filter(saved: &[SavedFilter]) -> Result<Selection> {
    let mut selection = Selection::default();
    for (index, SavedFilter { dimension, values }) in saved.iter().enumerate() {
        let dimension = Dimension::from_name(dimension).ok_or_else(|| {
            invalid_at(
                &format!("$.filter[{index}].dimension"),
                "want a dimension".to_owned(),
            )
        })?;
        let before = selection.0.last().map(|(dimension, _)| *dimension);
        if before >= Some(dimension) || !values.is_sorted_by(|a, b| a < b) {
            let message = "want dimensions in order and values sorted, none twice";
            return Err(invalid_at(
                &format!("$.filter[{index}]"),
                message.to_owned(),
            ));
        }
        selection.0.push((dimension, values.clone()));
    }
    Ok(selection)
}

fn load_part(saved: &SavedWindow, width: usize, path: &str) -> Result<Part> {
    let window = Window::parse(&saved.start, &saved.end)
        .map_err(|error| invalid_at(path, error.message().to_owned()))?;
    let reported = saved
        .reported
        .as_ref()
        .map(|counts| load_counts(counts, &format!("{path}.reported")));
    let notes = Notes {
        repeated_combinations: saved.notes.repeated_combinations,
        null_dimensions: saved.notes.null_dimensions,
    };
    let mut columns = vec![Vec::with_capacity(saved.rows.len()); width];
    let mut counts = Vec::with_capacity(saved.rows.len());
    for (index, row) in saved.rows.iter().enumerate() {
        let path = || format!("{path}.rows[{index}]");
        if row.values.len() != width {
            let message = format!("want {width} values, one per dimension");
            return Err(invalid_at(&path(), message));
        }
        for (column, value) in columns.iter_mut().zip(&row.values) {
            column.push(value.as_str());
        }
        counts.push(load_each(
            [&row.success, &row.errors, &row.filtered],
            &path,
        )?);
    }
    let rows = Rows::from_values(&columns, &counts).map_err(|(index, refused)| {
        let message = match refused {
            Refused::Repeated => "the same combination stands twice".to_owned(),
            _ => refusal(refused).message().to_owned(),
        };
        invalid_at(&format!("{path}.rows[{index}]"), message)
    })?;
    Ok(Part {
        window,
        reported: reported.transpose()?,
        notes,
        rows: Arc::new(rows),
    })
}

fn load_counts(saved: &SavedCounts, path: &str) -> Result<Counts> {
    let SavedCounts {
        success,
        errors,
        filtered,
    } = saved;
    load_each([success, errors, filtered], &|| path.to_owned())
}

fn load_each(digits: [&String; 3], path: &impl Fn() -> String) -> Result<Counts> {
    let mut counts = [0; 3];
    for ((count, digits), name) in counts.iter_mut().zip(digits).zip(Counts::NAMES) {
        *count = parse_count(digits).map_err(|error| {
            invalid_at(&format!("{}.{name}", path()), error.message().to_owned())
        })?;
    }
    let [success, errors, filtered] = counts;
    Ok(Counts {
        success,
        errors,
        filtered,
    })
}

impl From<&(Dimension, Vec<String>)> for SavedFilter {
    fn from((dimension, values): &(Dimension, Vec<String>)) -> Self {
        Self {
            dimension: dimension.as_str().to_owned(),
            values: values.clone(),
        }
    }
}

impl From<Counts> for SavedCounts {
    fn from(counts: Counts) -> Self {
        Self {
            success: counts.success.to_string(),
            errors: counts.errors.to_string(),
            filtered: counts.filtered.to_string(),
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidTable, message)
}

fn invalid_at(path: &str, message: String) -> Error {
    invalid(message).with_path(path.to_owned())
}

/// The offset of a line and column, both of which serde_json counts from 1.
fn offset_of(json: &[u8], line: usize, column: usize) -> u64 {
    let before: usize = json
        .split_inclusive(|byte| *byte == b'\n')
        .take(line.saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    (before + column.saturating_sub(1)) as u64
}
