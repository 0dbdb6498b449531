//! A long range, window by window, by any number of workers.
//!
//! `collect` is the machine, `ledger` what it has and what it has left, `probing` the probe before its windows,
//! `keep` how much of it is kept, `checkpoint` what is stored of it and taken up again, `ending` how windows and collects end.

pub(crate) mod checkpoint;
pub(crate) mod collect;
pub(crate) mod ending;
pub(crate) mod keep;
mod ledger;
pub(crate) mod options;
mod probing;
