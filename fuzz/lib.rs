//! The checks of the fuzz targets. Most of them are also the checks of the differential tests, which use other inputs.
#![allow(clippy::expect_used, clippy::panic, reason = "a check says so when it fails")]

mod exports;
mod inputs;
#[path = "../core/tests/plain/mod.rs"]
mod plain;
mod stored;

pub use inputs::{configuration, gunzip, headers, questions, rules};
use plain::checks;
pub use stored::documents as states;

/// Reads any bytes as a body. The bytes before the body choose how it is read.
pub fn fold(data: &[u8]) {
    checks::chosen_body(data);
}

/// Reads documents that the bytes choose, and damaged ones.
pub fn documents(data: &[u8]) {
    checks::chosen_documents(data, 2);
}

/// Counts, as digits and in bodies.
pub fn digits(data: &[u8]) {
    checks::digits(data);
}

/// The scan for the end of plain text.
pub fn text(data: &[u8]) {
    checks::text(data);
}

/// Timestamps, windows and steps, in lines.
pub fn timestamps(data: &[u8]) {
    checks::timestamps(data);
}

/// Saved tables.
pub fn table_json(data: &[u8]) {
    checks::table_json(data);
}

/// Exports values of dimensions that the bytes choose, in every text format that can be read back.
pub fn exports(data: &[u8]) {
    exports::values_come_back(data);
}
