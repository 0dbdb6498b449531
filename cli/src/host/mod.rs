//! Drives the core's state machines: provides the network, clocks, waits and files.
//!
//! - `session` is the client of one cluster and drives its calls. `network` sets up connections, decides which servers to
//!   trust, and names network failures. `exchange` sends one request, and `body` decodes the response.
//! - `ranges` reads the windows of a range, with or without a checkpoint, or windows as they end. `carry` sends the messages
//!   of pushes. `server` answers HTTP requests.
//! - `shared` shares responses between the parts of a process that read the same windows.
//! - `state` stores what a later process resumes from, and `lease` keeps other processes from using the same folder. `shutdown`
//!   stops work at a safe point.

mod body;
pub(crate) mod carry;
pub(crate) mod exchange;
#[cfg(test)]
mod faults;
mod lease;
pub(crate) mod network;
pub(crate) mod ranges;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod shutdown;
pub(crate) mod state;
