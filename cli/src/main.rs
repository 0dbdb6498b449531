//! The command `tallyfold`, which runs the core natively. It reads arguments and configuration, queries all clusters at
//! the same time, and prints counts.
//!
//! - `arguments/` turns flags into the core's options, which declare each flag's name, default and meaning.
//! - `config/` reads the file, the environment and secrets, and selects the clusters to query.
//! - `host/` drives the core's state machines: the network, the clock, waits, files. `app` has what all commands that
//!   query a service share.
//! - `doctor/` has the checks of `tallyfold doctor`, and the advice for checks that did not pass.
//! - `commands` is the whole command line, with a file for each command; `output/` writes their results.
//! - `health/` is what `check` does around the rules: it keeps history and notifies receivers.
//! - `watch/` is the live view.
//! - `failure` has the exit codes and the error type; `stderr` writes errors, warnings and notes to the user; `files` replaces
//!   and locks files.
#![forbid(unsafe_code)]

mod app;
mod arguments;
mod commands;
mod config;
mod doctor;
mod failure;
mod files;
mod health;
mod host;
mod output;
mod stderr;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run().into()
}
