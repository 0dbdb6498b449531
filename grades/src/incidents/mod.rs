//! A simulated quarter of traffic with life in it and with known incidents, and what the standard rules and a simple peer find in it.

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
