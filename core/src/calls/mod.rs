//! The client as a machine: it says what to send, and the host reports what came back.
//!
//! [`Machine`](crate::Machine) holds what all calls of a client share: its tokens, and the pace of its requests.
//! Each [`Call`](crate::Call) is driven by the host: `state_machine` holds the order of things in it, `api_request` and
//! `token_request` what follows each response, `retries` what is tried again. `patience` is what a long range adds to
//! that: calls that stop early when the service is down, so that the range can wait.

pub(crate) mod any_endpoint;
mod api_request;
pub(crate) mod attempt;
pub(crate) mod broken;
pub(crate) mod call;
pub(crate) mod delay;
pub(crate) mod health;
pub(crate) mod machine;
pub(crate) mod options;
mod pace;
pub(crate) mod patience;
mod reply;
mod retries;
pub(crate) mod retry;
mod shared;
mod state_machine;
pub(crate) mod step;
mod token_request;
