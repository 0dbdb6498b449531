//! The client as a state machine: it returns what to send, and the host reports what came back.
//!
//! [`Machine`](crate::Machine) holds what all calls of a client share: its tokens, and the pace of its requests. The
//! host drives each [`Call`](crate::Call). `state_machine` has the order of its steps, `api_request` and
//! `token_request` decide what follows each response, and `retries` decides what is retried. `patience` is for the
//! calls of a long range: they stop early when the service is down, so that the range can wait.

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
