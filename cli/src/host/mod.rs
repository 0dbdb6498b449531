//! The host of the core's machines: network, clock, waits, files.

pub(crate) mod carry;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod exchange;
#[cfg(test)]
mod faults;
pub(crate) mod files;
mod lease;
pub(crate) mod network;
pub(crate) mod ranges;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod shutdown;
