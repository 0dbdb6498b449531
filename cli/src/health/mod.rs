//! What `check` does around the rules: it keeps history, notifies receivers, and remembers what they were notified of.
//!
//! - `files` has the places of rules, state and history, the rules, and the state that a run leaves for the next one.
//! - `history` keeps the counts that rules look back on in files, and reads missing counts from the service.
//! - `notify` has the flags of receivers, and drives the notifications.

pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod notify;
