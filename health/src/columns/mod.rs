//! Counts as columns: the groups of a table, and its windows as slots of equal length.

pub(crate) mod bytes;
pub(crate) mod groups;
pub(crate) mod page;
pub(crate) mod page_head;
pub(crate) mod pages;
pub(crate) mod slots;
