//! Writes the results of commands in the format that the user selects.
//!
//! - `report` contains the results of a command by cluster, including what is missing, and writes remarks about counts
//!   as sentences. `sink` opens the output: stdout or a file.
//! - `show` defines the flags, and selects and orders rows for all formats. `write` calls the writer of the format:
//!   `table` for a terminal or a pipe, `comparison` for comparisons, `documented` for the JSON document (`document`
//!   defines its types), `export` for the formats of `tallyfold-export`, and `parquet`, which has the columns of CSV.
//! - `check` writes the results of `check`. `explain`, `follow`, `push` and `audit-logs` write their own.
//! - `grid` aligns columns and formats rates, and `safe` escapes values for a terminal.

pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod document;
pub(crate) mod documented;
pub(crate) mod export;
pub(crate) mod grid;
pub(crate) mod parquet;
pub(crate) mod report;
pub(crate) mod safe;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod write;
