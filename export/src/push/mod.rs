//! Sends an export to another system, message by message: what to send, what an answer means, and when to try again.
//! The host carries the bytes.

pub(crate) mod delivery;
pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod report;
pub(crate) mod target;
