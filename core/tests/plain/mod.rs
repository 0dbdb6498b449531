//! A plain reader of the documents that the fold reads, documents for both, and checks that compare
//! them.
//!
//! The differential tests and the fuzz targets share all of this.

pub(crate) mod checks;
pub(crate) mod documents;
pub(crate) mod reading;
