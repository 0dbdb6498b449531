//! The tests of this crate. One program for all files takes much less time to compile than a program for each.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod follow;
mod protobuf;
mod protobuf_otlp;
mod protobuf_remote_write;
mod push;
mod readers;
mod tables;
mod texts;
