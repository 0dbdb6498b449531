//! Rules applied to counts: findings, states, replay.

pub(crate) mod course;
pub(crate) mod finding;
pub(crate) mod grid;
pub(crate) mod identity;
pub(crate) mod judge;
pub(crate) mod limits;
pub(crate) mod normal;
pub(crate) mod odd;
pub(crate) mod outcome;
pub(crate) mod run;
pub(crate) mod sentence;
pub(crate) mod shown;
pub(crate) mod slots;
pub(crate) mod state;
pub(crate) mod stored;
pub(crate) mod told;
