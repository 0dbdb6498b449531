//! The command `tallyfold`. It reads arguments and the configuration, queries all clusters at the same time, and prints counts.
//!
//! - `arguments/` turns flags into the core's options, which declare each flag's name, default and meaning.
//! - `config/` reads the configuration file and the environment, and selects the clusters to query.
//! - `host/` drives the core's state machines: it provides the network, the clocks, waits and files. `app` contains what all
//!   commands that query a service share.
//! - `doctor/` contains the checks of `tallyfold doctor`, and the advice for checks that did not pass.
//! - `commands` defines the command line, with a file for each command; `output/` writes the results of commands.
//! - `health/` reads rules, stores the history of counts that `check` compares with, and notifies receivers of alerts.
//! - `watch/` draws the live view of `tallyfold watch`.
//! - `failure` defines the exit codes and the error type; `stderr` writes errors, warnings and notes to stderr; `files`
//!   replaces and locks files.
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
