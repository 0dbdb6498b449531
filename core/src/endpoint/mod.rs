//! One file per API call, named as the service names it: what is sent, what comes back, and what is checked.
//! What calls have in common stands beside them: `contract` what each is, `metrics` and `query` the two
//! analytics endpoints, `token_response` the two token endpoints.

pub(crate) mod audit_logs;
pub(crate) mod contract;
pub(crate) mod control_token;
pub(crate) mod event_delivery;
pub(crate) mod event_ingestion;
pub(crate) mod metrics;
pub(crate) mod orchestration_token;
pub(crate) mod query;
pub(crate) mod target;
pub(crate) mod token_response;
