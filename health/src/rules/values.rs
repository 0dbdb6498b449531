//! Kinds of values that several keys of a rules file share.

use std::collections::BTreeMap;

use tallyfold::text::{Fraction, milliseconds};
use tallyfold::{Dimension, Result, TimeStep};

use super::document::{Entry, Table};
use super::names::Side;

/// The names of all dimensions.
fn dimension_names() -> Vec<&'static str> {
    let names = Dimension::ALL.iter();
    names.map(|dimension| dimension.as_str()).collect()
}

/// A list of dimensions, each once.
pub(crate) fn dimensions(entry: &Entry<'_>) -> Result<Vec<Dimension>> {
    let wanted = "want a list of dimensions, such as [\"integration\"]";
    let mut dimensions = Vec::new();
    for item in entry.items(wanted)? {
        let name = item.text(wanted)?;
        let dimension = Dimension::from_name(name);
        let dimension =
            dimension.ok_or_else(|| item.unknown("dimension", name, &dimension_names()))?;
        if dimensions.contains(&dimension) {
            return Err(item.wrong("this dimension is there twice"));
        }
        dimensions.push(dimension);
    }
    Ok(dimensions)
}

/// A list of values for each dimension, in the usual order of dimensions.
pub(crate) fn values(entry: &Entry<'_>) -> Result<Vec<(Dimension, Vec<String>)>> {
    let wanted = "want values by dimensions, such as { integration = [\"Amazon S3\"] }";
    let mut values = Vec::new();
    for inner in entry.table(wanted)?.entries() {
        let dimension = Dimension::from_name(inner.name);
        let dimension =
            dimension.ok_or_else(|| inner.unknown("dimension", inner.name, &dimension_names()))?;
        let texts = inner.texts("want text, or a list of texts")?;
        if texts.is_empty() {
            return Err(inner.wrong("want one value or more"));
        }
        values.push((dimension, texts));
    }
    values.sort();
    Ok(values)
}

/// A step that divides a day.
pub(crate) fn step(entry: &Entry<'_>) -> Result<TimeStep> {
    let wanted = "want a step that divides a day, such as 5m, 15m, 1h or 1d";
    let step = TimeStep::parse(entry.text(wanted)?);
    // Shorter windows would need far more requests than the service can answer.
    step.ok()
        .filter(|step| step.seconds() >= 60)
        .ok_or_else(|| entry.wrong(wanted))
}

/// A table of texts, by name.
pub(crate) fn labels(entry: &Entry<'_>) -> Result<BTreeMap<String, String>> {
    let wanted = "want texts by names, such as { team = \"data\" }";
    let mut labels = BTreeMap::new();
    for label in entry.table(wanted)?.entries() {
        let text = label.text("want text")?;
        labels.insert(label.name.to_owned(), text.to_owned());
    }
    Ok(labels)
}

/// The longest length of time, in seconds: ten years.
const LONGEST: u64 = 10 * 366 * 86_400;

/// A length of time in whole seconds, from one second to ten years.
pub(crate) fn length(entry: &Entry<'_>) -> Result<u64> {
    let wanted = "want a length of time such as 5m, 6h, 3d or 4w";
    milliseconds(entry.text(wanted)?)
        .filter(|ms| ms.is_multiple_of(1_000))
        .map(|ms| ms / 1_000)
        .filter(|seconds| (1..=LONGEST).contains(seconds))
        .ok_or_else(|| entry.wrong(wanted))
}

/// One of a closed list of names.
pub(crate) fn named<T: Copy>(
    entry: &Entry<'_>,
    what: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T> {
    let names: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
    let wanted = format!("want one of {}", names.join(", "));
    let name = entry.text(&wanted)?;
    let found = all.iter().find(|one| name_of(**one) == name);
    found
        .copied()
        .ok_or_else(|| entry.unknown(what, name, &names))
}

/// Which side of a baseline counts.
pub(crate) fn side(table: &Table<'_>) -> Result<Side> {
    match table.entry("side") {
        Some(entry) => named(&entry, "side", Side::ALL, Side::as_str),
        None => Ok(Side::Both),
    }
}

/// A share such as 5%.
pub(crate) fn share(entry: &Entry<'_>) -> Result<Fraction> {
    let wanted = "want a share such as 5% or 0.5%";
    Fraction::share(entry.text(wanted)?).ok_or_else(|| entry.wrong(wanted))
}
