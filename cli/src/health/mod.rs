//! What `check` does around the rules: it keeps history, remembers what was said, and sends it.
//!
//! - `history` keeps the counts that rules look back on in files; `past` reads what is missing there.
//! - `memory` is what a run leaves to the next one, and `alert` what is told of a finding.
//! - `receiver` sends alerts: `alertmanager` and `template` make the messages, `receiver_options` is a receiver as it is written.

pub(crate) mod alert;
pub(crate) mod alertmanager;
pub(crate) mod history;
pub(crate) mod memory;
pub(crate) mod past;
pub(crate) mod receiver;
pub(crate) mod receiver_options;
pub(crate) mod template;
