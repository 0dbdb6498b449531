//! A table as JSON; [`loaded`](super::loaded) reads it back.

use serde::{Serialize, Serializer};
use tallyfold_engine::{Counts, Rows};

use super::change::{Deltas, Digits};
use super::dimension::Dimension;
use super::metric::Metric;
use super::part::Part;
use super::subject::Subject;
use crate::checksum::checksum;
use crate::time::timestamp::Timestamp;
use crate::wire::json::writer::json_of;

/// The name of the format in the JSON. The number grows when old readers can't read new JSON.
pub(crate) const FORMAT: &str = "tallyfold-table/2";

/// The same for a table without a digest, such as in a checkpoint, whose own digest covers it.
pub(crate) const FORMAT_WITHOUT_DIGEST: &str = "tallyfold-table/1";

/// A table in its saved form.
#[derive(Serialize)]
pub(crate) struct SavedTable<'a> {
    format: &'static str,
    /// The checksum of the table's JSON in the format without this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    metric: Option<Metric>,
    dimensions: Vec<&'static str>,
    filter: Vec<SavedFilter<'a>>,
    /// Left out if it isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a str>,
    totals: SavedCounts,
    windows: Vec<SavedWindow<'a>>,
}

/// The values that one dimension was filtered by.
#[derive(Serialize)]
pub(crate) struct SavedFilter<'a> {
    dimension: Dimension,
    values: &'a [String],
}

/// A window of a table. Its rows are unpacked only while it is written.
pub(crate) struct SavedWindow<'a>(pub(crate) &'a Part);

/// A window in the form in which it is written.
#[derive(Serialize)]
struct WrittenWindow<'a> {
    start: Timestamp,
    end: Timestamp,
    /// `true`, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<bool>,
    /// `true`, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<bool>,
    reported: Option<SavedCounts>,
    notes: SavedNotes,
    rows: SavedRows<'a>,
}

struct SavedRows<'a>(&'a Rows);

#[derive(Serialize)]
struct SavedNotes {
    repeated_combinations: u64,
    null_dimensions: u64,
}

/// Counts as strings of digits, because a JSON number can't hold them exactly.
#[derive(Serialize)]
pub(crate) struct SavedCounts {
    success: Digits,
    errors: Digits,
    filtered: Digits,
}

/// One row: its dimension values in the table's order, and its counts.
#[derive(Serialize)]
pub(crate) struct SavedRow<'a> {
    values: Vec<&'a str>,
    success: Digits,
    errors: Digits,
    filtered: Digits,
}

impl<'a> SavedTable<'a> {
    /// A whole table, without a digest.
    pub(crate) fn of(subject: &'a Subject, totals: Counts, parts: &'a [Part]) -> Self {
        Self::new(subject, totals, parts.iter().map(SavedWindow).collect())
    }

    /// A table of some windows; `None` if there are none.
    pub(crate) fn of_windows(subject: &'a Subject, parts: &[&'a Part]) -> Option<Self> {
        let totals = parts.iter().map(|part| part.rows.totals());
        // If they overflow, everything that adds these windows up ends with that error.
        let totals =
            totals.fold(Counts::default(), |sum, totals| sum.checked_add(totals).unwrap_or(sum));
        let windows = parts.iter().map(|part| SavedWindow(part)).collect();
        (!parts.is_empty()).then(|| Self::new(subject, totals, windows))
    }

    fn new(subject: &'a Subject, totals: Counts, windows: Vec<SavedWindow<'a>>) -> Self {
        Self {
            format: FORMAT_WITHOUT_DIGEST,
            digest: None,
            metric: subject.metric,
            dimensions: subject.dimensions.names(),
            filter: SavedFilter::all(subject),
            identity: subject.identity.as_str(),
            totals: totals.into(),
            windows,
        }
    }

    /// The checksum of a table that has no digest yet.
    pub(crate) fn digest(&self) -> String {
        checksum(&[json_of(self).as_bytes()])
    }

    /// The same table with its digest.
    pub(crate) fn with_digest(self) -> Self {
        Self { format: FORMAT, digest: Some(self.digest()), ..self }
    }
}

impl<'a> SavedFilter<'a> {
    /// The filter of a subject.
    pub(crate) fn all(subject: &'a Subject) -> Vec<Self> {
        let filters = subject.selection.0.iter();
        let filter = |(dimension, values): &'a (Dimension, Vec<String>)| Self {
            dimension: *dimension,
            values,
        };
        filters.map(filter).collect()
    }
}

impl SavedCounts {
    fn new([success, errors, filtered]: [Digits; 3]) -> Self {
        Self { success, errors, filtered }
    }
}

impl<'a> SavedRow<'a> {
    pub(crate) fn new(values: impl Iterator<Item = &'a str>, counts: Counts) -> Self {
        let SavedCounts { success, errors, filtered } = counts.into();
        Self { values: values.collect(), success, errors, filtered }
    }
}

impl Serialize for SavedWindow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        WrittenWindow {
            start: part.window.start(),
            end: part.window.end(),
            provisional: part.provisional.then_some(true),
            unfinished: part.unfinished.then_some(true),
            reported: part.reported.map(SavedCounts::from),
            notes: SavedNotes {
                repeated_combinations: part.notes.repeated_combinations,
                null_dimensions: part.notes.null_dimensions,
            },
            rows: SavedRows(&part.rows.get()),
        }
        .serialize(serializer)
    }
}

impl Serialize for SavedRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0;
        serializer.collect_seq((0..rows.len()).map(|row| {
            let values = (0..rows.width()).map(|column| rows.value(row, column));
            SavedRow::new(values, rows.counts(row))
        }))
    }
}

impl From<Counts> for SavedCounts {
    fn from(counts: Counts) -> Self {
        Self::new(counts.each().map(Digits::from))
    }
}

impl From<Deltas> for SavedCounts {
    fn from(deltas: Deltas) -> Self {
        Self::new(deltas.digits())
    }
}
