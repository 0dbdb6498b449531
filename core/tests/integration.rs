//! The tests of this crate. One program for all files takes much less time to compile than a program for each.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod architecture;
mod chunks;
mod client;
mod differential;
mod faults;
mod flips;
mod model;
mod options;
mod pages;
mod plain;
mod retry;
mod revocations;
mod series;
mod storm;
mod support;
mod vectors;
mod windows;
