//! The live view: groups such as integrations, ranked by lost events, with the counts of each window.
//!
//! - `history` keeps the newest windows of one cluster and computes a line for each group.
//! - `state` holds what is shown (clusters, order, selection, filter) and handles keys.
//! - `findings` applies rules to the windows in memory.
//! - `draw` draws a state into a buffer or as text; it does no terminal I/O and reads no clock.
//! - `live` reads the windows of each cluster as they close, and connects readers, keys, clock and terminal.

pub(crate) mod draw;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod state;
