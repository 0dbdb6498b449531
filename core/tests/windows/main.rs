//! Tests the state machines for many windows against the sandbox, in virtual time: collect,
//! checkpoints, follow and the probe.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so when it fails"
)]

mod checkpoint;
mod collect;
mod follow;
mod keep;
mod patience;
mod probe;
#[allow(dead_code, reason = "the tests of single calls use the rest of it")]
#[path = "../support/mod.rs"]
mod support;
mod whose;
mod world;
