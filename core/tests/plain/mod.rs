//! A plain reading of what the fold reads, documents for both, and checks that hold the fold to it.
//!
//! The differential tests and the fuzz targets share all of it.

pub(crate) mod checks;
pub(crate) mod documents;
pub(crate) mod reading;
