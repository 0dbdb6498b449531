//! A table as JSON, and back.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use tallyfold_engine::{Refused, Rows};

use super::selection::Selection;
use super::{CountTable, Counts, Notes, Part, parse_count, refusal};
use crate::dimension::{Dimension, Dimensions, Metric};
use crate::error::{Code, Error, Result};
use crate::tree::Tree;
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

#[derive(Serialize)]
struct SavedWindow {
    start: String,
    end: String,
    reported: Option<SavedCounts>,
    notes: SavedNotes,
    rows: Vec<SavedRow>,
}

/// The values that one dimension was filtered by.
#[derive(Serialize)]
pub(super) struct SavedFilter {
    dimension: String,
    values: Vec<String>,
}

#[derive(Serialize)]
struct SavedNotes {
    repeated_combinations: u64,
    null_dimensions: u64,
}

#[derive(Serialize)]
pub(super) struct SavedCounts {
    pub(super) success: String,
    pub(super) errors: String,
    pub(super) filtered: String,
}

/// One row: its dimension values in the table's order, and its counts.
#[derive(Serialize)]
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
        let saved: Tree<'_> = serde_json::from_slice(json).map_err(|error| {
            let offset = offset_of(json, error.line(), error.column());
            let problem: String = error.to_string().chars().take(120).collect();
            invalid(format!("this is no saved table: {problem}")).with_offset(offset)
        })?;
        let names = [
            "format",
            "metric",
            "dimensions",
            "filter",
            "totals",
            "windows",
        ];
        let fields = saved.into_fields(names);
        let [format, metric, dimensions, filter, totals, windows] = fields.ok_or_else(|| {
            let message = format!(
                "this is no saved table: want an object of {}",
                names.join(", ")
            );
            invalid_at("$", message)
        })?;
        if format.into_text().as_deref() != Some(FORMAT) {
            return Err(invalid_at("$.format", format!("want {FORMAT}")));
        }
        let metric = load_metric(metric)?;
        let dimensions = load_dimensions(dimensions, metric)?;
        let selection = load_filter(filter)?;
        let parts = load_parts(windows, dimensions.len())?;
        let table = Self::of_parts(dimensions, metric, parts, selection)
            .map_err(|error| invalid_at("$.windows", error.message()))?;
        if table.totals() != load_counts(totals, "$.totals")? {
            let message = "the totals are not the sums of the rows: the table was changed";
            return Err(invalid_at("$.totals", message));
        }
        Ok(table)
    }
}

fn load_metric(saved: Tree<'_>) -> Result<Option<Metric>> {
    let name = saved.given().map(|name| text(name, "$.metric"));
    let metric = name.transpose()?.map(|name| Metric::from_name(&name));
    metric
        .transpose()
        .map_err(|error| invalid_at("$.metric", error.message()))
}

fn load_dimensions(saved: Tree<'_>, metric: Option<Metric>) -> Result<Dimensions> {
    let path = "$.dimensions";
    let names = saved.into_texts().ok_or_else(|| want(path, "strings"))?;
    let dimensions = Dimensions::parse("dimensions", &names).and_then(|dimensions| {
        let available = metric.map_or(Ok(()), |metric| dimensions.check_available(metric));
        available.map(|()| dimensions)
    });
    dimensions.map_err(|error| invalid_at(path, error.message()))
}

/// Takes a filter as it is written: dimensions in their order, values sorted, none twice.
fn load_filter(saved: Tree<'_>) -> Result<Selection> {
    let mut selection = Selection::default();
    let filters = saved
        .into_list()
        .ok_or_else(|| want("$.filter", "a list"))?;
    for (index, filter) in filters.into_iter().enumerate() {
        let path = format!("$.filter[{index}]");
        let [dimension, values] = object(filter, ["dimension", "values"], &path)?;
        let name = dimension.into_text().unwrap_or_default();
        let dimension = Dimension::from_name(&name)
            .ok_or_else(|| want(&format!("{path}.dimension"), "a dimension"))?;
        let values = values.into_texts();
        let values = values.ok_or_else(|| want(&format!("{path}.values"), "strings"))?;
        let before = selection.0.last().map(|(dimension, _)| *dimension);
        if before >= Some(dimension) || !values.is_sorted_by(|a, b| a < b) {
            let message = "want dimensions in order and values sorted, none twice";
            return Err(invalid_at(&path, message));
        }
        let values = values.into_iter().map(Cow::into_owned).collect();
        selection.0.push((dimension, values));
    }
    Ok(selection)
}

fn load_parts(saved: Tree<'_>, width: usize) -> Result<Vec<Part>> {
    let windows = saved.into_list();
    let windows = windows.ok_or_else(|| want("$.windows", "a list"))?;
    if windows.is_empty() {
        let message = "a table covers at least one window";
        return Err(invalid_at("$.windows", message));
    }
    let mut parts: Vec<Part> = Vec::with_capacity(windows.len());
    for (index, window) in windows.into_iter().enumerate() {
        let path = format!("$.windows[{index}]");
        let part = load_part(window, width, &path)?;
        let before = parts.last().map(|part| part.window);
        if before.is_some_and(|before| before.end() > part.window.start()) {
            let message = "a window starts before the one above it has ended";
            return Err(invalid_at(&format!("{path}.start"), message));
        }
        parts.push(part);
    }
    Ok(parts)
}

fn load_part(saved: Tree<'_>, width: usize, path: &str) -> Result<Part> {
    let names = ["start", "end", "reported", "notes", "rows"];
    let [start, end, reported, notes, rows] = object(saved, names, path)?;
    let (start, end) = (
        text(start, &format!("{path}.start"))?,
        text(end, &format!("{path}.end"))?,
    );
    let window = Window::parse(&start, &end).map_err(|error| invalid_at(path, error.message()))?;
    let reported = reported.given();
    let reported = reported.map(|counts| load_counts(counts, &format!("{path}.reported")));
    Ok(Part {
        window,
        notes: load_notes(notes, &format!("{path}.notes"))?,
        rows: Arc::new(load_rows(rows, width, &format!("{path}.rows"))?),
        reported: reported.transpose()?,
    })
}

fn load_notes(saved: Tree<'_>, path: &str) -> Result<Notes> {
    let names = ["repeated_combinations", "null_dimensions"];
    let numbers = object(saved, names, path)?.map(Tree::into_whole);
    match numbers {
        [Some(repeated_combinations), Some(null_dimensions)] => Ok(Notes {
            repeated_combinations,
            null_dimensions,
        }),
        _ => Err(want(path, "two numbers")),
    }
}

fn load_rows(saved: Tree<'_>, width: usize, path: &str) -> Result<Rows> {
    let saved = saved.into_list().ok_or_else(|| want(path, "a list"))?;
    let mut rows = Vec::with_capacity(saved.len());
    let mut counts = Vec::with_capacity(saved.len());
    for (index, row) in saved.into_iter().enumerate() {
        let path = || format!("{path}[{index}]");
        let names = ["values", "success", "errors", "filtered"];
        let Some([values, success, errors, filtered]) = row.into_fields(names) else {
            return Err(want_fields(&path(), &names));
        };
        let values = values.into_texts().filter(|values| values.len() == width);
        let Some(values) = values else {
            let message = format!("want {width} values, one per dimension");
            return Err(invalid_at(&path(), message));
        };
        rows.push(values);
        counts.push(load_each([success, errors, filtered], &path)?);
    }
    let column = |column: usize| rows.iter().map(|values| &*values[column]).collect();
    let columns: Vec<Vec<&str>> = (0..width).map(column).collect();
    Rows::from_values(&columns, &counts).map_err(|(index, refused)| {
        let message = match refused {
            Refused::Repeated => "the same combination stands twice".to_owned(),
            _ => refusal(refused).message().to_owned(),
        };
        invalid_at(&format!("{path}[{index}]"), message)
    })
}

fn load_counts(saved: Tree<'_>, path: &str) -> Result<Counts> {
    let digits = object(saved, Counts::NAMES, path)?;
    load_each(digits, &|| path.to_owned())
}

fn load_each(digits: [Tree<'_>; 3], path: &dyn Fn() -> String) -> Result<Counts> {
    let mut counts = [0; 3];
    for ((count, digits), name) in counts.iter_mut().zip(digits).zip(Counts::NAMES) {
        let digits = digits.into_text().unwrap_or_default();
        *count = parse_count(&digits)
            .map_err(|error| invalid_at(&format!("{}.{name}", path()), error.message()))?;
    }
    let [success, errors, filtered] = counts;
    Ok(Counts {
        success,
        errors,
        filtered,
    })
}

fn object<'a, const N: usize>(
    saved: Tree<'a>,
    names: [&str; N],
    path: &str,
) -> Result<[Tree<'a>; N]> {
    let fields = saved.into_fields(names);
    fields.ok_or_else(|| want_fields(path, &names))
}

fn text<'a>(saved: Tree<'a>, path: &str) -> Result<Cow<'a, str>> {
    saved.into_text().ok_or_else(|| want(path, "a string"))
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

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidTable, message)
}

fn invalid_at(path: &str, message: impl Into<String>) -> Error {
    invalid(message).with_path(path.to_owned())
}

fn want(path: &str, what: &str) -> Error {
    invalid_at(path, format!("want {what}"))
}

fn want_fields(path: &str, names: &[&str]) -> Error {
    want(path, &format!("an object of {}", names.join(", ")))
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
