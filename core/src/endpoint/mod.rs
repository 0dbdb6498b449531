//! One file per API call, named as the service names it: what is sent, what comes back, and what is
//! checked. The other files hold what endpoints share: `contract` is the interface of all,
//! `metrics` and `query` belong to the two analytics endpoints, and `token_response` to the two
//! token endpoints.

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
