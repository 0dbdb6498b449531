//! A simulated quarter of traffic with known incidents, and what the standard rules find in it.

mod alarm;
mod incident;
mod plan;
mod random;
mod report;
pub(crate) mod run;
mod score;
mod tables;
mod traffic;
mod vocabulary;
mod watch;
mod world;
