//! Supports `check`: stores the history and the state, and notifies receivers.
//!
//! - `files` finds the files with the rules, the state and the history, and reads the rules and the state. A run saves
//!   the state for the next run.
//! - `history` stores the counts that rules look back on, and reads missing counts from the service.
//! - `notify` defines the flags of receivers, and sends the notifications.

pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod notify;
