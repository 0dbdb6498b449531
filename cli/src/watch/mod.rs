//! The live view: integrations ranked by the events that were lost, window by window.
//!
//! - `history` keeps the newest windows of one cluster and computes a line for each group.
//! - `state` is what is shown: clusters, order, selection, filter. `keys` says what a key does to it.
//! - `draw/` draws a state into a buffer; it does no I/O and reads no clock.
//! - `reader` reads windows of one cluster as they close; `run` connects reader, keys, clock and `screen`.
//! - `judge` applies rules to the windows that are there.
//! - `once` prints the same view as text.

pub(crate) mod draw;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod keys;
pub(crate) mod once;
pub(crate) mod reader;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod state;
