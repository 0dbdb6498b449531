//! What identifies a combination of dimension values.

/// The most columns that rows can have.
pub(crate) const MOST_COLUMNS: usize = 4;

/// The ids of one combination, as many as there are columns; the others are 0.
pub type Key = [u32; MOST_COLUMNS];
