//! Counts as columns: rows are combined into groups, and windows into slots of equal length.

pub(crate) mod bytes;
pub(crate) mod groups;
pub(crate) mod page;
pub(crate) mod page_head;
pub(crate) mod pages;
pub(crate) mod slots;
