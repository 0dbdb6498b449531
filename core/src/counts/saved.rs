//! A table as JSON, and back.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tallyfold_engine::{Counts, Refused, Rows};

use super::dimension::{Dimension, Dimensions};
use super::metric::Metric;
use super::parse::{parse_count, refusal};
use super::part::{Notes, Part};
use super::selection::Selection;
use super::subject::Subject;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::window::Window;

/// What the JSON says it is; a change that old readers can't read gets a new number.
const FORMAT: &str = "tallyfold-table/1";

/// A table as it is saved, with its windows as they are or as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedTable<'a, W> {
    #[serde(borrow)]
    format: Text<'a>,
    metric: Option<Text<'a>>,
    dimensions: Vec<Text<'a>>,
    filter: Vec<SavedFilter<'a>>,
    totals: SavedCounts<'a>,
    windows: Vec<W>,
}

/// The values that one dimension was filtered by.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedFilter<'a> {
    #[serde(borrow)]
    dimension: Text<'a>,
    values: Vec<Text<'a>>,
}

/// What one response said.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedWindow<'a> {
    #[serde(borrow)]
    start: Text<'a>,
    end: Text<'a>,
    reported: Option<SavedCounts<'a>>,
    notes: SavedNotes,
    rows: Vec<SavedRow<'a>>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedNotes {
    repeated_combinations: u64,
    null_dimensions: u64,
}

/// Counts as strings of digits, as no JSON number holds them exactly.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedCounts<'a> {
    #[serde(borrow)]
    success: Text<'a>,
    errors: Text<'a>,
    filtered: Text<'a>,
}

/// One row: its dimension values in the table's order, and its counts.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedRow<'a> {
    #[serde(borrow)]
    values: Vec<Text<'a>>,
    success: Text<'a>,
    errors: Text<'a>,
    filtered: Text<'a>,
}

/// Text that is borrowed from the document where it stands there without escapes.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The JSON of a table.
pub(crate) fn write(subject: &Subject, totals: Counts, parts: &[Part]) -> String {
    // Only strings and small integers are written, which can't fail.
    let windows: Vec<SavedWindow<'_>> = parts.iter().map(SavedWindow::from).collect();
    serde_json::to_string(&SavedTable::new(subject, totals, windows)).unwrap_or_default()
}

/// What stands in the JSON of a table: what it counts, its parts, and the totals of all of them.
pub(crate) fn read(json: &[u8]) -> Result<(Subject, Vec<Part>, Counts)> {
    let saved: SavedTable<'_, SavedWindow<'_>> = serde_json::from_slice(json).map_err(|error| {
        let problem: String = error.to_string().chars().take(120).collect();
        invalid(format!("this is no saved table: {problem}")).with_offset(offset_of(json, &error))
    })?;
    saved.load()
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
                .map(Text::from)
                .collect(),
            filter: subject.selection.0.iter().map(SavedFilter::from).collect(),
            totals: totals.into(),
            windows,
        }
    }
}

impl SavedTable<'_, SavedWindow<'_>> {
    fn load(self) -> Result<(Subject, Vec<Part>, Counts)> {
        if self.format.0 != FORMAT {
            return Err(invalid_at("$.format", format!("want {FORMAT}")));
        }
        let metric = load_metric(self.metric)?;
        let dimensions = load_dimensions(&self.dimensions, metric)?;
        let subject = Subject {
            dimensions,
            metric,
            selection: load_filter(self.filter)?,
        };
        let parts = load_parts(self.windows, dimensions.len())?;
        Ok((subject, parts, self.totals.load("$.totals")?))
    }
}

fn load_metric(saved: Option<Text<'_>>) -> Result<Option<Metric>> {
    let known = |name: Text<'_>| {
        let metric = Metric::from_name(&name.0);
        metric.ok_or_else(|| invalid_at("$.metric", "want event_delivery or event_ingestion"))
    };
    saved.map(known).transpose()
}

fn load_dimensions(saved: &[Text<'_>], metric: Option<Metric>) -> Result<Dimensions> {
    let names: Vec<&str> = saved.iter().map(|name| &*name.0).collect();
    let dimensions = Dimensions::parse("dimensions", &names).and_then(|dimensions| {
        let available = metric.map_or(Ok(()), |metric| dimensions.check_available(metric));
        available.map(|()| dimensions)
    });
    dimensions.map_err(|error| invalid_at("$.dimensions", error.message()))
}

/// Takes a filter as it is written: dimensions in their order, values sorted, none twice.
fn load_filter(saved: Vec<SavedFilter<'_>>) -> Result<Selection> {
    let mut selection = Selection::default();
    for (index, SavedFilter { dimension, values }) in saved.into_iter().enumerate() {
        let path = format!("$.filter[{index}]");
        let dimension = Dimension::from_name(&dimension.0)
            .ok_or_else(|| invalid_at(&format!("{path}.dimension"), "want a dimension"))?;
        let before = selection.0.last().map(|(dimension, _)| *dimension);
        if before >= Some(dimension) || !values.is_sorted_by(|a, b| a.0 < b.0) {
            let message = "want dimensions in order and values sorted, none twice";
            return Err(invalid_at(&path, message));
        }
        let values = values
            .into_iter()
            .map(|value| value.0.into_owned())
            .collect();
        selection.0.push((dimension, values));
    }
    Ok(selection)
}

fn load_parts(saved: Vec<SavedWindow<'_>>, width: usize) -> Result<Vec<Part>> {
    if saved.is_empty() {
        let message = "a table covers at least one window";
        return Err(invalid_at("$.windows", message));
    }
    let mut parts: Vec<Part> = Vec::with_capacity(saved.len());
    for (index, window) in saved.into_iter().enumerate() {
        let path = format!("$.windows[{index}]");
        let part = window.load(width, &path)?;
        let before = parts.last().map(|part| part.window);
        if before.is_some_and(|before| before.end() > part.window.start()) {
            let message = "a window starts before the one above it has ended";
            return Err(invalid_at(&format!("{path}.start"), message));
        }
        parts.push(part);
    }
    Ok(parts)
}

impl SavedWindow<'_> {
    fn load(self, width: usize, path: &str) -> Result<Part> {
        let window = Window::parse(&self.start.0, &self.end.0);
        let reported = self
            .reported
            .map(|counts| counts.load(&format!("{path}.reported")));
        Ok(Part {
            window: window.map_err(|error| invalid_at(path, error.message()))?,
            reported: reported.transpose()?,
            notes: Notes {
                repeated_combinations: self.notes.repeated_combinations,
                null_dimensions: self.notes.null_dimensions,
            },
            rows: Arc::new(load_rows(&self.rows, width, &format!("{path}.rows"))?),
        })
    }
}

fn load_rows(saved: &[SavedRow<'_>], width: usize, path: &str) -> Result<Rows> {
    let mut counts = Vec::with_capacity(saved.len());
    for (index, row) in saved.iter().enumerate() {
        if row.values.len() != width {
            let message = format!("want {width} values, one per dimension");
            return Err(invalid_at(&format!("{path}[{index}]"), message));
        }
        let digits = [&row.success, &row.errors, &row.filtered];
        counts.push(load_counts(digits, || format!("{path}[{index}]"))?);
    }
    let column = |column: usize| saved.iter().map(|row| &*row.values[column].0).collect();
    let columns: Vec<Vec<&str>> = (0..width).map(column).collect();
    Rows::from_values(&columns, &counts).map_err(|(index, refused)| {
        let message = match refused {
            Refused::Repeated => "the same combination stands twice".to_owned(),
            _ => refusal(refused).message(),
        };
        invalid_at(&format!("{path}[{index}]"), message)
    })
}

impl SavedCounts<'_> {
    /// Numbers as digits, with a `-` before those below 0.
    pub(crate) fn new<N: ToString>(counts: [N; 3]) -> Self {
        let [success, errors, filtered] = counts.map(|count| Text(Cow::Owned(count.to_string())));
        Self {
            success,
            errors,
            filtered,
        }
    }

    fn load(&self, path: &str) -> Result<Counts> {
        load_counts([&self.success, &self.errors, &self.filtered], || {
            path.to_owned()
        })
    }
}

fn load_counts(digits: [&Text<'_>; 3], path: impl Fn() -> String) -> Result<Counts> {
    let mut counts = [0; 3];
    for ((count, digits), name) in counts.iter_mut().zip(digits).zip(Counts::NAMES) {
        *count = parse_count(&digits.0)
            .map_err(|error| invalid_at(&format!("{}.{name}", path()), error.message()))?;
    }
    let [success, errors, filtered] = counts;
    Ok(Counts {
        success,
        errors,
        filtered,
    })
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
            start: Text(Cow::Owned(part.window.start().to_string())),
            end: Text(Cow::Owned(part.window.end().to_string())),
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

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidTable, message.into())
}

pub(crate) fn invalid_at(path: &str, message: impl Into<String>) -> Error {
    invalid(message).with_path(path.to_owned())
}

/// Where in a document serde_json has found an error: it counts lines and columns from 1.
pub(crate) fn offset_of(json: &[u8], error: &serde_json::Error) -> u64 {
    let before: usize = json
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    (before + error.column().saturating_sub(1)) as u64
}
