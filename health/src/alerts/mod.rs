//! Alerts: when to notify receivers, when to notify them again, and when an alert has ended.
//!
//! - `alert` makes alerts from incidents, with their labels and the command that shows the counts.
//! - `kinds` is the list of all kinds of receivers, each with its file in `kinds/`. `form` describes a kind.
//! - `notified` records what each receiver was notified of. Callers keep it between runs.
//! - `notifications` is the state machine: it returns one delivery at a time, and finally the new state.

pub(crate) mod alert;
pub(crate) mod form;
pub(crate) mod kinds;
pub(crate) mod notifications;
pub(crate) mod notified;
pub(crate) mod options;
