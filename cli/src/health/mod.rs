//! What `check` does around the rules: it keeps history, notifies receivers, and remembers what they were notified of.
//!
//! - `places` is where rules, state and history are.
//! - `history` keeps the counts that rules look back on in files; `past` reads missing counts from the service.
//! - `memory` is what a run leaves for the next one.
//! - `notify` has the flags of receivers, and drives the notifications.

pub(crate) mod history;
pub(crate) mod memory;
pub(crate) mod notify;
pub(crate) mod past;
pub(crate) mod places;
