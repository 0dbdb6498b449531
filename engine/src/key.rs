//! What identifies a combination of dimension values.

/// The most columns that rows can have.
pub(crate) const MOST_COLUMNS: usize = 4;

/// The ids of one combination, one for each column; the rest is 0.
pub type Key = [u32; MOST_COLUMNS];
