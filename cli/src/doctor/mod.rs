//! Contains the checks of `tallyfold doctor`, and the advice for checks that did not pass. `commands/doctor.rs` runs the checks
//! in order.
//!
//! - `diagnosis` defines the result of one check and of all checks; `advice` contains the advice for each failure.
//! - `configuration` checks the settings, and `path` checks the network path to each address, with the server's certificate and
//!   clock.
//! - `service` makes the same calls as other commands, records details that a call does not report, and checks the responses.

pub(crate) mod advice;
pub(crate) mod configuration;
pub(crate) mod diagnosis;
pub(crate) mod path;
pub(crate) mod service;
