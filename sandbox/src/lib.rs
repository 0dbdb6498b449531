//! A simulated service that needs no network, for examples, tests and demos without a cluster.
//!
//! It serializes its responses with serde_json from its own structs. From the client's side, it uses only errors,
//! arguments, clocks and secrets, so that the two can't share a misreading of the service.
//!
//! The service reference does not cover everything, so the sandbox makes assumptions. Each of them has a name:
//!
//! - `error_body`: errors are JSON, `{"error": word, "message": sentence}`.
//! - `metrics_401`: the analytics endpoints respond with 401 under the same conditions as the Orchestration API.
//!   Reference 7 covers only the Orchestration API.
//! - `token_refusal_status`: 401 for a client id, secret or audience that is not the one issued,
//!   400 for a malformed token request.
//! - `invalid_query_status`: 400 for a wrong `start`, `end` or `dimensions`, 415 for a body that
//!   does not say it is JSON, 404 for an unknown path, 405 for a wrong method.
//! - `strict_requests`: a field or parameter that the reference does not list is refused with 400.
//! - `half_open_window`: an event at `start` counts, an event at `end` does not. With `closed_windows`, it does.
//! - `ingestion_counts`: event_ingestion responds like event_delivery, from the same events.
//! - `reason_of_delivered`: only filtered events have a reason; all other events have `""`.
//! - `reason_values`: what a reason's text looks like.
//! - `entries`: combinations without events are left out, and the order of entries is not defined.
//! - `echoed_window`: `start` and `end` are the timestamps of the request, but not necessarily its text.
//! - `longest_window`: a window of seeded traffic has at most 400 days.
//! - `audit_log_shape`, `audit_log_paging`: everything about the audit-log listing.
#![forbid(unsafe_code)]

mod dimensions;
mod endpoint;
mod event;
mod events;
mod fault;
mod fault_json;
mod faults;
mod instant;
mod mix;
mod numbered;
mod options;
mod response;
mod sandbox;
mod scene;
mod traffic;
mod vocabulary;

pub use endpoint::{SandboxEndpoint, SandboxStats};
pub use event::{Outcome, SandboxEvent};
pub use fault::{Fault, FaultEffect, FaultKind, FaultOptions};
pub use options::SandboxOptions;
pub use response::SandboxResponse;
pub use sandbox::Sandbox;
pub use scene::Scene;
