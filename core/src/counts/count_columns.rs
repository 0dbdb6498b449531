//! The three counts of each row, in columns.

use tallyfold_engine::Counts;

use super::count_name::CountName;
use super::frame::{Column, Values};

/// The three counts of each row, in columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountColumns([Vec<u64>; 3]);

impl CountColumns {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self([(); 3].map(|()| Vec::with_capacity(rows)))
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        &self.0[0]
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        &self.0[1]
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        &self.0[2]
    }

    /// How many rows.
    pub(crate) fn rows(&self) -> usize {
        self.success().len()
    }

    /// The counts of a row.
    pub(crate) fn counts(&self, row: usize) -> Counts {
        Counts {
            success: self.success()[row],
            errors: self.errors()[row],
            filtered: self.filtered()[row],
        }
    }

    pub(crate) fn push(&mut self, counts: Counts) {
        for (column, count) in self.0.iter_mut().zip(counts.each()) {
            column.push(count);
        }
    }

    /// Adds the rows of whole columns.
    pub(crate) fn extend(&mut self, success: &[u64], errors: &[u64], filtered: &[u64]) {
        for (column, counts) in self.0.iter_mut().zip([success, errors, filtered]) {
            column.extend_from_slice(counts);
        }
    }

    /// The columns of a frame, or of one side of a frame that has two.
    pub(crate) fn columns(&self, side: Option<&'static str>) -> Vec<Column<'_>> {
        count_columns(side, self.0.each_ref().map(Vec::as_slice))
    }
}

/// The three columns of counts of a frame, or of one side of a frame that has two.
pub(crate) fn count_columns<'a>(
    side: Option<&'static str>,
    counts: [&'a [u64]; 3],
) -> Vec<Column<'a>> {
    let columns = CountName::ALL.iter().zip(counts);
    columns
        .map(|(name, counts)| Column { side, name: name.as_str(), values: Values::Counts(counts) })
        .collect()
}
