//! Reads a table from the JSON that [`saved`](super::saved) has written.
//!
//! Every document is read as a [`Tree`] first: deriving a reader for each part of a saved table
//! would make the WebAssembly larger.

use tallyfold_engine::{Counts, Refused, Rows};

use super::dimension::{Dimension, Dimensions};
use super::identity::Identity;
use super::metric::Metric;
use super::parse::{parse_count, refusal};
use super::part::{Notes, Part};
use super::saved::{FORMAT, FORMAT_WITHOUT_DIGEST};
use super::selection::Selection;
use super::subject::Subject;
use super::tree::{NoJson, Tree};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::window::Window;

/// The contents of a table's JSON.
pub(crate) struct Loaded {
    /// What the table counts.
    pub(crate) subject: Subject,
    pub(crate) parts: Vec<Part>,
    /// The totals of all parts, as the JSON states them.
    pub(crate) totals: Counts,
    /// The table's checksum, as the JSON states it; `None` for a format without one.
    pub(crate) digest: Option<String>,
}

/// Reads a table's JSON. The caller checks the totals and the digest.
pub(crate) fn read(json: &[u8]) -> Result<Loaded> {
    let saved = Tree::read(json).map_err(|NoJson { problem, offset }| {
        invalid(format!("this isn't a saved table: {problem}")).with_offset(offset)
    })?;
    let names =
        ["format", "digest", "metric", "dimensions", "filter", "identity", "totals", "windows"];
    let fields = saved.fields(names);
    let [format, digest, metric, dimensions, filter, identity, totals, windows] = fields
        .ok_or_else(|| {
            let names = names.join(", ");
            invalid_at("$", format!("this isn't a saved table: want an object of {names}"))
        })?;
    let digest = load_digest(format, digest)?;
    let metric = load_metric(metric)?;
    let dimensions = load_dimensions(dimensions, metric)?;
    let subject = Subject {
        dimensions,
        metric,
        selection: load_filter(filter)?,
        identity: match identity.given() {
            Some(identity) => Identity::new(text(identity, "$.identity")?),
            None => Identity::default(),
        },
    };
    Ok(Loaded {
        parts: load_parts(windows, dimensions.len())?,
        subject,
        totals: load_counts(totals, "$.totals")?,
        digest,
    })
}

/// Reads the digest. The format determines whether there is one.
fn load_digest(format: &Tree<'_>, digest: &Tree<'_>) -> Result<Option<String>> {
    match (format.text(), digest.given()) {
        (Some(FORMAT), Some(digest)) => Ok(Some(text(digest, "$.digest")?.to_owned())),
        (Some(FORMAT), None) => Err(want("$.digest", "the table's checksum")),
        (Some(FORMAT_WITHOUT_DIGEST), None) => Ok(None),
        _ => Err(want("$.format", FORMAT)),
    }
}

fn load_metric(saved: &Tree<'_>) -> Result<Option<Metric>> {
    let known = |saved: &Tree<'_>| {
        let metric = Metric::from_name(text(saved, "$.metric")?);
        metric.ok_or_else(|| want("$.metric", "event_delivery or event_ingestion"))
    };
    saved.given().map(known).transpose()
}

fn load_dimensions(saved: &Tree<'_>, metric: Option<Metric>) -> Result<Dimensions> {
    let path = "$.dimensions";
    let names = saved.texts().ok_or_else(|| want(path, "strings"))?;
    let dimensions = Dimensions::parse("dimensions", &names).and_then(|dimensions| {
        let available = metric.map_or(Ok(()), |metric| dimensions.check_available(metric));
        available.map(|()| dimensions)
    });
    dimensions.map_err(|error| invalid_at(path, error.message()))
}

/// Reads a filter: dimensions in their order, each with sorted values, no value twice.
fn load_filter(saved: &Tree<'_>) -> Result<Selection> {
    let mut selection = Selection::default();
    let filters = saved.list().ok_or_else(|| want("$.filter", "a list"))?;
    for (index, filter) in filters.iter().enumerate() {
        let (dimension, values) =
            load_values(filter).map_err(|error| inside(&format!("$.filter[{index}]"), error))?;
        let before = selection.0.last().map(|(dimension, _)| *dimension);
        if before >= Some(dimension) || !values.is_sorted_by(|a, b| a < b) {
            let message = "want dimensions in order and values sorted, none twice";
            return Err(invalid_at(&format!("$.filter[{index}]"), message));
        }
        selection.0.push((dimension, values));
    }
    Ok(selection)
}

/// A dimension and the values that it was filtered by. Paths begin with the filter.
fn load_values(saved: &Tree<'_>) -> Result<(Dimension, Vec<String>)> {
    let [dimension, values] = object(saved, ["dimension", "values"], "")?;
    let name = dimension.text().unwrap_or_default();
    let dimension = Dimension::from_name(name).ok_or_else(|| want(".dimension", "a dimension"))?;
    let values = values.texts().ok_or_else(|| want(".values", "strings"))?;
    Ok((dimension, values.into_iter().map(str::to_owned).collect()))
}

fn load_parts(saved: &Tree<'_>, width: usize) -> Result<Vec<Part>> {
    let windows = saved.list();
    let windows = windows.ok_or_else(|| want("$.windows", "a list"))?;
    if windows.is_empty() {
        let message = "a table covers at least one window";
        return Err(invalid_at("$.windows", message));
    }
    let mut parts: Vec<Part> = Vec::with_capacity(windows.len());
    for (index, window) in windows.iter().enumerate() {
        let before = parts.last().map(|part| part.window);
        let part = load_part(window, width, before);
        parts.push(part.map_err(|error| inside(&format!("$.windows[{index}]"), error))?);
    }
    Ok(parts)
}

/// A window of the table, which must not start before the window before it has ended. Paths begin with the window.
fn load_part(saved: &Tree<'_>, width: usize, before: Option<Window>) -> Result<Part> {
    let names = ["start", "end", "provisional", "unfinished", "reported", "notes", "rows"];
    let [start, end, provisional, unfinished, reported, notes, rows] = object(saved, names, "")?;
    let (start, end) = (text(start, ".start")?, text(end, ".end")?);
    let window = Window::parse(start, end).map_err(|error| invalid_at("", error.message()))?;
    let reported = reported.given();
    let part = Part {
        window,
        notes: load_notes(notes)?,
        provisional: load_flag(provisional, ".provisional")?,
        unfinished: load_flag(unfinished, ".unfinished")?,
        rows: load_rows(rows, width)?.into(),
        reported: reported.map(|counts| load_counts(counts, ".reported")).transpose()?,
    };
    if before.is_some_and(|before| before.end() > window.start()) {
        let message = "a window starts before the one above it has ended";
        return Err(invalid_at(".start", message));
    }
    Ok(part)
}

fn load_flag(saved: &Tree<'_>, path: &str) -> Result<bool> {
    match saved {
        Tree::Null => Ok(false),
        Tree::Flag(flag) => Ok(*flag),
        _ => Err(want(path, "true or false")),
    }
}

fn load_notes(saved: &Tree<'_>) -> Result<Notes> {
    let path = ".notes";
    let names = ["repeated_combinations", "null_dimensions"];
    let numbers = object(saved, names, path)?.map(Tree::whole);
    match numbers {
        [Some(repeated_combinations), Some(null_dimensions)] => {
            Ok(Notes { repeated_combinations, null_dimensions })
        }
        _ => Err(want(path, "two numbers")),
    }
}

fn load_rows(saved: &Tree<'_>, width: usize) -> Result<Rows> {
    let saved = saved.list().ok_or_else(|| want(".rows", "a list"))?;
    let mut rows = Vec::with_capacity(saved.len());
    let mut counts = Vec::with_capacity(saved.len());
    for (index, row) in saved.iter().enumerate() {
        let path = || format!(".rows[{index}]");
        let names = ["values", "success", "errors", "filtered"];
        let Some([values, success, errors, filtered]) = row.fields(names) else {
            return Err(want_fields(&path(), &names));
        };
        let values = values.texts().filter(|values| values.len() == width);
        let Some(values) = values else {
            let message = format!("want {width} values, one per dimension");
            return Err(invalid_at(&path(), message));
        };
        rows.push(values);
        counts.push(load_each([success, errors, filtered], &path)?);
    }
    let column = |column: usize| rows.iter().map(|values| values[column]).collect();
    let columns: Vec<Vec<&str>> = (0..width).map(column).collect();
    Rows::from_values(&columns, &counts).map_err(|(index, refused)| {
        let message = match refused {
            Refused::Repeated => "the same combination occurs twice".to_owned(),
            _ => refusal(refused).message(),
        };
        invalid_at(&format!(".rows[{index}]"), message)
    })
}

fn load_counts(saved: &Tree<'_>, path: &str) -> Result<Counts> {
    let digits = object(saved, Counts::NAMES, path)?;
    load_each(digits, &|| path.to_owned())
}

fn load_each(digits: [&Tree<'_>; 3], path: &dyn Fn() -> String) -> Result<Counts> {
    let mut counts = [0; 3];
    for ((count, digits), name) in counts.iter_mut().zip(digits).zip(Counts::NAMES) {
        let digits = digits.text().unwrap_or_default();
        *count = parse_count(digits)
            .map_err(|error| invalid_at(&format!("{}.{name}", path()), error.message()))?;
    }
    let [success, errors, filtered] = counts;
    Ok(Counts { success, errors, filtered })
}

fn object<'t, 'a, const N: usize>(
    saved: &'t Tree<'a>,
    names: [&str; N],
    path: &str,
) -> Result<[&'t Tree<'a>; N]> {
    let fields = saved.fields(names);
    fields.ok_or_else(|| want_fields(path, &names))
}

fn text<'t>(saved: &'t Tree<'_>, path: &str) -> Result<&'t str> {
    saved.text().ok_or_else(|| want(path, "a string"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidTable, message.into())
}

pub(crate) fn invalid_at(path: &str, message: impl Into<String>) -> Error {
    invalid(message).with_path(path.to_owned())
}

/// An error whose path begins inside the value at this path.
fn inside(path: &str, error: Error) -> Error {
    let rest = error.path().unwrap_or_default();
    let path = format!("{path}{rest}");
    error.with_path(path)
}

fn want(path: &str, what: &str) -> Error {
    invalid_at(path, format!("want {what}"))
}

fn want_fields(path: &str, names: &[&str]) -> Error {
    want(path, &format!("an object of {}", names.join(", ")))
}
