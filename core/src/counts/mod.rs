//! Counts: tables of them, series by window, comparisons, and what they have in common, the frame.

pub(crate) mod change;
mod compact;
pub(crate) mod comparison;
pub(crate) mod count_columns;
pub(crate) mod count_name;
pub(crate) mod dimension;
pub(crate) mod frame;
pub(crate) mod html;
pub(crate) mod identity;
pub(crate) mod loaded;
mod merge;
pub(crate) mod metric;
pub(crate) mod parse;
pub(crate) mod part;
pub(crate) mod reconciliation;
mod rejoined;
mod remap;
mod report;
pub(crate) mod saved;
pub(crate) mod selection;
pub(crate) mod series;
pub(crate) mod series_window;
pub(crate) mod subject;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod windowed;
pub(crate) mod windowed_columns;
