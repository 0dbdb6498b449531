//! What is printed: a report of counts in the format that the user wants.

pub(crate) mod flags;
pub(crate) mod report;
pub(crate) mod sink;
pub(crate) mod write;
