//! The live view: integrations ranked by the events that were lost, window by window.
//!
//! - `history` keeps the newest windows of one cluster and computes a line for each group.
//! - `state` is what is shown (clusters, order, selection, filter) and what a key changes of it.
//! - `findings` applies rules to the windows that are there.
//! - `draw/` draws a state into a buffer; it does no I/O and reads no clock. `once` prints the same view as text.
//! - `reader` reads windows of one cluster as they close; `screen` connects readers, keys, clock and terminal.

pub(crate) mod draw;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod once;
pub(crate) mod reader;
pub(crate) mod screen;
pub(crate) mod state;
