//! What `tallyfold doctor` looks at: a list of checks for each cluster, and advice for each that is not well.
//!
//! - `check` is the result of one check, and of all of them; `advice` says for each failure what to do next.
//! - `configuration`, `route`, `way`, `certificate` and `skew` look at what is set here and at the way to each address.
//! - `tokens`, `queries` and `totals` ask the service as the other commands do, through `look`, which also
//!   keeps what a call does not tell: durations and the coding of responses.
//! - `examination` does all of it in order for one cluster; `shown` prints it.

pub(crate) mod advice;
pub(crate) mod certificate;
pub(crate) mod check;
pub(crate) mod configuration;
pub(crate) mod examination;
pub(crate) mod look;
pub(crate) mod queries;
pub(crate) mod route;
pub(crate) mod shown;
pub(crate) mod skew;
pub(crate) mod tokens;
pub(crate) mod totals;
pub(crate) mod way;
pub(crate) mod words;
