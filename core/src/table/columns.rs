//! The three counts of each row, in columns.

use tallyfold_engine::Counts;

/// The three counts of each row, in columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountColumns {
    success: Vec<u64>,
    errors: Vec<u64>,
    filtered: Vec<u64>,
}

impl CountColumns {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self {
            success: Vec::with_capacity(rows),
            errors: Vec::with_capacity(rows),
            filtered: Vec::with_capacity(rows),
        }
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        &self.success
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        &self.errors
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        &self.filtered
    }

    /// How many rows.
    pub(super) fn rows(&self) -> usize {
        self.success.len()
    }

    /// The counts of a row.
    pub(super) fn counts(&self, row: usize) -> Counts {
        Counts {
            success: self.success[row],
            errors: self.errors[row],
            filtered: self.filtered[row],
        }
    }

    pub(super) fn push(&mut self, counts: Counts) {
        self.success.push(counts.success);
        self.errors.push(counts.errors);
        self.filtered.push(counts.filtered);
    }

    /// Adds the rows of whole columns.
    pub(super) fn extend(&mut self, success: &[u64], errors: &[u64], filtered: &[u64]) {
        self.success.extend_from_slice(success);
        self.errors.extend_from_slice(errors);
        self.filtered.extend_from_slice(filtered);
    }
}
