//! What is printed: a report of counts in the format that the user wants.
//!
//! - `report` is what a command has found; `flags` say how it is written, `sink` where to, and `write` does it. `progress` shows how far a
//!   long reading is.
//! - `pick` says which rows are written and in which order. All formats use it.
//! - `table` and `change_table` are for a person at a terminal: `grid` aligns their columns, `numerals` shows rates and shares,
//!   `safe` makes values harmless, and `remarks` says below a table what one must know of it. `plain` is for a pipe.
//! - `document` is the JSON document and its schema; `documented` makes it. `unknown` shows JSON of any other shape.
//! - `explained` writes what explains a change, and `found` is what `check` has found, which
//!   `found_written` and `found_metrics` write.
//! - `labeled` and `sources` say what is exported; `exported` writes it by `tallyfold-export`, where `openmetrics` joins the
//!   families of several clusters; `parquet` writes columns; `changes` writes comparisons as CSV and NDJSON.

pub(crate) mod change_table;
pub(crate) mod changes;
pub(crate) mod document;
pub(crate) mod documented;
pub(crate) mod explained;
pub(crate) mod exported;
pub(crate) mod exposition;
pub(crate) mod flags;
pub(crate) mod found;
pub(crate) mod found_metrics;
pub(crate) mod found_written;
pub(crate) mod grid;
pub(crate) mod labeled;
pub(crate) mod numerals;
pub(crate) mod openmetrics;
pub(crate) mod parquet;
pub(crate) mod pick;
pub(crate) mod plain;
pub(crate) mod progress;
pub(crate) mod pushed;
pub(crate) mod remarks;
pub(crate) mod report;
pub(crate) mod revision;
pub(crate) mod safe;
pub(crate) mod sink;
pub(crate) mod sources;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod unknown;
pub(crate) mod write;
