//! What `check` does around the rules: it keeps history, sends alerts, and remembers what it has sent.
//!
//! - `history` keeps the counts that rules look back on in files; `past` reads missing counts from the service.
//! - `memory` is what a run leaves for the next one, and `alert` is what is sent about a finding.
//! - `receiver` sends alerts: `alertmanager` and `template` make the messages, and `receiver_options` holds the
//!   settings of a receiver.

pub(crate) mod alert;
pub(crate) mod alertmanager;
pub(crate) mod history;
pub(crate) mod memory;
pub(crate) mod past;
pub(crate) mod receiver;
pub(crate) mod receiver_options;
pub(crate) mod template;
