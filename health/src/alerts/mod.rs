//! Alerts: when to notify receivers, when to notify them again, and when an alert has ended.
//!
//! - `alert` makes alerts from incidents, with their labels and the command that shows the counts.
//! - `kinds` lists the kinds of receivers, with their properties. Each kind has a file in `kinds/`.
//! - `notifications` is the state machine. It returns one delivery at a time and, at the end, the alerts that each receiver was
//!   notified of. Callers keep this state until the next run.

pub(crate) mod alert;
pub(crate) mod kinds;
pub(crate) mod notifications;
pub(crate) mod options;
