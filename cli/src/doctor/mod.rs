//! What `tallyfold doctor` checks, with advice for each check that did not pass. The command itself makes the checks in
//! order.
//!
//! - `diagnosis` is the result of one check and of all checks; `advice` has what to do next for each failure.
//! - `configuration` checks what is set here, `way` the way to each address, `server` the certificate and the clock at its
//!   end.
//! - `service` makes the calls that other commands make, and keeps what a call does not report; `totals` checks what the
//!   responses show.

pub(crate) mod advice;
pub(crate) mod configuration;
pub(crate) mod diagnosis;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod totals;
pub(crate) mod way;
