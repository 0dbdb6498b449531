//! One file per API call, and what their responses have in common.

pub(crate) mod audit_logs;
pub(crate) mod control_token;
pub(crate) mod event_delivery;
pub(crate) mod event_ingestion;
pub(crate) mod head;
mod metrics;
pub(crate) mod orchestration_token;
mod token_body;

pub(crate) use audit_logs::AuditLogsQuery;
pub(crate) use metrics::MetricsQuery;
pub(crate) use token_body::TokenBody;

use crate::error::Result;
use crate::http::{BaseAddress, Request};
use crate::table::CountTable;
use crate::token::{AccessToken, Audience};

/// What a call gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document whose shape the reference does not show: checked, and as it was sent.
    Json(Vec<u8>),
}

/// An API call that needs a token of one API.
pub(crate) trait Endpoint: Send + 'static {
    /// The API whose tokens it takes.
    type Audience: Audience;
    /// What reads its response.
    type Body: Body;

    fn request(&self, base: &BaseAddress, token: &AccessToken<Self::Audience>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}
