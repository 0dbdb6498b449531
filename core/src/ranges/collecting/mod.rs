//! A long range, window by window, by any number of workers.
//!
//! `collect` is the state machine. `ledger` has the windows that were read and those that are left, `probing` makes the
//! probe before the windows are read, and `keep` decides which windows are added up. `checkpoint` stores what was read, and
//! loads it again. `ending` has the results of windows and collects.

pub(crate) mod checkpoint;
pub(crate) mod collect;
pub(crate) mod ending;
pub(crate) mod keep;
mod ledger;
pub(crate) mod options;
mod probing;
