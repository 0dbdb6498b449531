//! What one response said.

use std::sync::Arc;

use serde::Serialize;
use tallyfold_engine::{Counts, Rows};

use crate::time::window::Window;

/// What one response said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) window: Window,
    /// The response's totals; `None` once it was filtered.
    pub(crate) reported: Option<Counts>,
    pub(crate) notes: Notes,
    pub(crate) rows: Arc<Rows>,
}

/// What was let pass because the caller asked for tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Notes {
    /// Entries whose combination of dimension values stood in the response before; they were added up.
    pub repeated_combinations: u64,
    /// Dimension values that were `null`; they were read as empty strings.
    pub null_dimensions: u64,
}

impl Notes {
    /// Both added up.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            repeated_combinations: self
                .repeated_combinations
                .saturating_add(other.repeated_combinations),
            null_dimensions: self.null_dimensions.saturating_add(other.null_dimensions),
        }
    }
}
