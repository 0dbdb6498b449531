//! Applies rules to counts: findings, the state between checks, and replays.

pub(crate) mod causes;
pub(crate) mod findings;
pub(crate) mod progress;
pub(crate) mod result;
pub(crate) mod run;
mod sentence;
pub(crate) mod state;
pub(crate) mod task;
