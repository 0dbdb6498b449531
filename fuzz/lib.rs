//! What the fuzz targets check: the same as the differential tests, with other inputs.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a check says so when it fails"
)]

mod exports;
mod inputs;
#[path = "../core/tests/plain/mod.rs"]
mod plain;
mod stored;

pub use inputs::{configuration, gunzip, headers, questions, rules};
use plain::checks;
pub use stored::documents as states;

/// Any bytes as a body, with choices before them.
pub fn fold(data: &[u8]) {
    checks::chosen_body(data);
}

/// Documents that the bytes choose.
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

/// Values of dimensions that the bytes choose, in every text format that is read back.
pub fn exports(data: &[u8]) {
    exports::values_come_back(data);
}
