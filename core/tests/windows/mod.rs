//! Tests the state machines for many windows against the sandbox, in virtual time: collect,
//! checkpoints, follow and the probe.

mod checkpoint;
mod collect;
mod follow;
mod keep;
mod patience;
mod probe;
mod whose;
mod world;
