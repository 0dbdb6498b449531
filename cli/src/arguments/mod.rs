//! Flags, and how they become the options of the core.

pub(crate) mod declared;
pub(crate) mod following;
pub(crate) mod given;
pub(crate) mod labels;
pub(crate) mod query;
pub(crate) mod range;
