//! The tests of this crate. One program for all files takes much less time to compile than a program for each.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod cases;
mod check;
mod clusters;
mod collect;
mod dashboard;
mod doctor;
mod follow;
mod follow_clusters;
mod late;
mod mcp;
mod pages;
mod push;
mod push_follow;
mod run;
mod safety;
mod sandbox;
mod serve;
mod signals;
mod soak;
mod support;
mod watch;
