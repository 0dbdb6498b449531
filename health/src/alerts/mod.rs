//! Alerts: what receivers are notified of, when again, and when it is over.
//!
//! - `alert` makes alerts of findings: their labels, and the command that shows the counts.
//! - `kinds` is the list of all kinds of receivers, each with its file in `kinds/`. `form` is what is known of a kind.
//! - `notified` is what each receiver was notified of, which is kept between runs.
//! - `notifications` is the machine: it hands out one delivery after the other, and gives the new state.

pub(crate) mod alert;
pub(crate) mod form;
pub(crate) mod kinds;
pub(crate) mod notifications;
pub(crate) mod notified;
pub(crate) mod options;
