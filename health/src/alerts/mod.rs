//! Alerts: when to notify receivers, when to notify them again, and when an alert has ended.
//!
//! - `alert` makes alerts from incidents, with their labels and the command that shows the counts.
//! - `kinds` describes a kind of receiver, and lists all kinds, each with its file in `kinds/`.
//! - `notifications` is the state machine: it returns one delivery at a time, and finally what each receiver was notified of,
//!   which callers keep until the next run.

pub(crate) mod alert;
pub(crate) mod kinds;
pub(crate) mod notifications;
pub(crate) mod options;
