//! A simulated quarter of traffic with known incidents and other changes, and what the standard rules and a simple method
//! for comparison, the peer, find in it.

mod alarm;
mod change;
mod clock;
mod names;
mod peer;
mod plan;
mod random;
mod report;
pub(crate) mod run;
mod score;
mod tables;
mod traffic;
mod watch;
mod world;
