//! What is printed: a report of counts in the format that the user wants.

pub(crate) mod exposition;
pub(crate) mod flags;
pub(crate) mod pushed;
pub(crate) mod report;
pub(crate) mod revision;
pub(crate) mod sink;
pub(crate) mod write;
