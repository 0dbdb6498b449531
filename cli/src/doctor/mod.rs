//! The checks of `tallyfold doctor`, with advice for each check that did not pass. The command itself runs them in
//! order.
//!
//! - `diagnosis` defines the result of one check and of all checks; `advice` contains the advice for each failure.
//! - `configuration` checks the settings, `path` the connection to each address, and `server` the server's certificate
//!   and clock.
//! - `service` makes the same calls as other commands, records details that a call does not report, and checks the responses.

pub(crate) mod advice;
pub(crate) mod configuration;
pub(crate) mod diagnosis;
pub(crate) mod path;
pub(crate) mod server;
pub(crate) mod service;
