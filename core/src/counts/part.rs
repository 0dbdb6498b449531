//! The contents of one response.

use std::sync::Arc;

use serde::Serialize;
use tallyfold_engine::{Counts, Rows};

use crate::time::window::Window;

/// The contents of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) window: Window,
    /// The totals that the response reported; `None` once the rows were filtered.
    pub(crate) reported: Option<Counts>,
    pub(crate) notes: Notes,
    pub(crate) rows: Arc<Rows>,
}

/// How many deviations were tolerated, because the caller asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Notes {
    /// Entries that repeated a combination of dimension values in the same response; they were
    /// added up.
    pub repeated_combinations: u64,
    /// Dimension values that were `null`; they were read as empty strings.
    pub null_dimensions: u64,
}

impl Notes {
    /// The sums of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            repeated_combinations: self
                .repeated_combinations
                .saturating_add(other.repeated_combinations),
            null_dimensions: self.null_dimensions.saturating_add(other.null_dimensions),
        }
    }
}
