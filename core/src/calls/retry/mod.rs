//! Which failures are retried, after how long, and how often: rules and numbers, without a client.
//!
//! The service's reference shows neither rate limits nor error statuses except 401 (7 and 8), so
//! each number here is an assumption, named in `docs/assumptions.md`.

pub(crate) mod budget;
pub(crate) mod jitter;
pub(crate) mod not_before;
pub(crate) mod passing;
