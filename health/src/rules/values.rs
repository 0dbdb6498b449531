//! Reads and sets the kinds of values that several keys of a rules file share.

use std::collections::BTreeMap;

use tallyfold::arguments::toml::{Entry, Result, Table};
use tallyfold::text::{Fraction, milliseconds};
use tallyfold::{Dimension, TimeStep};

/// The shortest windows, in seconds. Shorter windows would need far more requests than the service can answer.
pub(crate) const SHORTEST_WINDOW: u32 = 60;

/// Generates a setter method for each of these fields.
macro_rules! setters {
    ($( $(#[doc = $doc:expr])+ $field:ident: $type:ty, )+) => { $(
        $(#[doc = $doc])+
        #[must_use]
        pub fn $field(mut self, $field: impl tallyfold::arguments::Setting<$type>) -> Self {
            self.$field = $field.setting();
            self
        }
    )+ };
}
pub(crate) use setters;

/// Returns the names of all dimensions.
fn dimension_names() -> Vec<&'static str> {
    let names = Dimension::ALL.iter();
    names.map(|dimension| dimension.as_str()).collect()
}

/// Reads a list of dimensions without repetitions.
pub(crate) fn dimensions(entry: &Entry<'_>) -> Result<Vec<Dimension>> {
    let wanted = "want a list of dimensions, such as [\"integration\"]";
    let mut dimensions = Vec::new();
    for item in entry.items(wanted)? {
        let name = item.text(wanted)?;
        let dimension = Dimension::from_name(name);
        let dimension =
            dimension.ok_or_else(|| item.unknown("dimension", name, &dimension_names()))?;
        if dimensions.contains(&dimension) {
            return Err(item.wrong("this dimension is repeated"));
        }
        dimensions.push(dimension);
    }
    Ok(dimensions)
}

/// Reads a list of values for each dimension, sorted by dimension.
pub(crate) fn values(entry: &Entry<'_>) -> Result<Vec<(Dimension, Vec<String>)>> {
    let wanted = "want values by dimensions, such as { integration = [\"Amazon S3\"] }";
    let mut values = Vec::new();
    for inner in entry.table(wanted)?.entries() {
        let dimension = Dimension::from_name(inner.name);
        let dimension =
            dimension.ok_or_else(|| inner.unknown("dimension", inner.name, &dimension_names()))?;
        let texts = texts(&inner, "want text, or a list of texts")?;
        if texts.is_empty() {
            return Err(inner.wrong("want at least one value"));
        }
        values.push((dimension, texts));
    }
    values.sort();
    Ok(values)
}

/// Reads a step that divides a day and is at least a minute long.
pub(crate) fn step(entry: &Entry<'_>) -> Result<TimeStep> {
    let wanted = "want a step that divides a day, such as 5m, 15m, 1h or 1d";
    let step = TimeStep::parse(entry.text(wanted)?);
    step.ok().filter(|step| step.seconds() >= SHORTEST_WINDOW).ok_or_else(|| entry.wrong(wanted))
}

/// Reads a table of texts by name.
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

/// Reads a length of time in whole seconds, from one second to ten years.
pub(crate) fn length(entry: &Entry<'_>) -> Result<u64> {
    let wanted = "want a length of time such as 5m, 6h, 3d or 4w";
    milliseconds(entry.text(wanted)?)
        .filter(|ms| ms.is_multiple_of(1_000))
        .map(|ms| ms / 1_000)
        .filter(|seconds| (1..=LONGEST).contains(seconds))
        .ok_or_else(|| entry.wrong(wanted))
}

/// Reads the length of time of a key. Returns the default if the key is missing.
pub(crate) fn length_of(table: &Table<'_>, key: &str, usual: u64) -> Result<u64> {
    table.entry(key).map_or(Ok(usual), |entry| length(&entry))
}

/// Reads a number of events, at least `least`.
pub(crate) fn count(entry: &Entry<'_>, least: u64) -> Result<u64> {
    entry.within(least, u64::MAX, "a number of events")
}

/// Reads a text or a list of texts.
pub(crate) fn texts(entry: &Entry<'_>, wanted: &str) -> Result<Vec<String>> {
    if let Some(text) = entry.as_text() {
        return Ok(vec![text.to_owned()]);
    }
    let items = entry.items(wanted)?;
    let texts = items.iter().map(|item| Ok(item.text(wanted)?.to_owned()));
    texts.collect()
}

/// Reads a name from a closed list.
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
    found.copied().ok_or_else(|| entry.unknown(what, name, &names))
}

/// Reads a share such as 5%.
pub(crate) fn share(entry: &Entry<'_>) -> Result<Fraction> {
    let wanted = "want a share such as 5% or 0.5%";
    Fraction::share(entry.text(wanted)?).ok_or_else(|| entry.wrong(wanted))
}
