//! What is printed: what a command has found, in the format that the user wants.
//!
//! - `report` is what a command has found, cluster by cluster, with what is missing; it also has what must be known of counts,
//!   in sentences. `sink` is where results go.
//! - `show` has the flags, and chooses rows and their order for all formats. `write` calls the writer of the format: `table` for a
//!   person or a pipe, `comparison` for what has changed, `documented` for the JSON document whose types are in `document`,
//!   `export` for the formats of `tallyfold-export`, and `parquet`, which has the columns of CSV.
//! - `check` and `explained` write what these commands have found, `revision` writes the revisions of `follow`, and `pushed`
//!   what became of pushes.
//! - `grid` aligns columns and writes rates, `safe` makes values harmless, `progress` shows how far a long reading is, and `unknown` shows JSON of any shape.

pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod document;
pub(crate) mod documented;
pub(crate) mod explained;
pub(crate) mod export;
pub(crate) mod grid;
pub(crate) mod parquet;
pub(crate) mod progress;
pub(crate) mod pushed;
pub(crate) mod report;
pub(crate) mod revision;
pub(crate) mod safe;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod unknown;
pub(crate) mod write;
