//! The tests of this crate. One program for all files takes much less time to compile than a program for each.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod alerts;
mod cause;
mod fixture;
mod golden;
mod kinds;
mod pages;
mod rules_file;
mod states;
mod statistics;
mod window_by_window;
