//! Rules applied to counts: findings, states, replay.

pub(crate) mod batch;
pub(crate) mod burning;
pub(crate) mod causes;
pub(crate) mod drifting;
pub(crate) mod expected;
pub(crate) mod finding;
pub(crate) mod findings;
pub(crate) mod limits;
pub(crate) mod presence;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod sentence;
pub(crate) mod silent;
pub(crate) mod state;
pub(crate) mod task;
pub(crate) mod totals;
pub(crate) mod undelivered;
pub(crate) mod usual;
