//! The command `tallyfold`: a native host of the core. It reads arguments and configuration, carries the bytes of all
//! clusters at the same time, and prints counts. `command` is the whole command line.
//!
//! - `arguments/` turns flags into the core's options, which declare each flag's name, default and meaning.
//! - `config/` reads the file, the environment and secrets, and knows which clusters are queried.
//! - `host/` drives the core's machines: the network, the clock, waits, files. `app` has what every command shares that
//!   queries a service.
//! - `doctor/` has the checks of `tallyfold doctor`, and the advice for checks that did not pass.
//! - `commands/` has a file for each command; `output/` writes what they have found.
//! - `health/` is what `check` does around the rules: it keeps history and notifies receivers.
//! - `watch/` is the live view.
//! - `failure` has the exit codes and what went wrong; `stderr` writes what a person should know.
#![forbid(unsafe_code)]

mod app;
mod arguments;
mod command;
mod commands;
mod config;
mod doctor;
mod failure;
mod health;
mod host;
mod output;
mod stderr;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::run().into()
}
