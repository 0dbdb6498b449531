//! Drives the core's state machines: network, clock, waits, files.
//!
//! - `session` is the client of one cluster and drives its calls. `network` sets up its connections, says which servers they
//!   trust, and names their failures; `exchange` sends one request, and `body` decodes the
//!   response.
//! - `ranges` reads windows, of a range (with a checkpoint) or as they close; `carry` delivers pushes; `server` answers HTTP
//!   requests.
//! - `shared` keeps responses for the parts of a process that read the same windows.
//! - `state` and `lease` store what a later process resumes from; `shutdown` stops work at a safe point.

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
