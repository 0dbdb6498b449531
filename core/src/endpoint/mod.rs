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
use crate::window::Window;

/// What a call gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document whose shape the reference does not show: checked, and as it was sent.
    Json(Vec<u8>),
}

/// What a request is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A token endpoint (service reference 4.1 and 4.3).
    Token,
    /// Service reference 4.4.
    EventDelivery,
    /// Service reference 4.5.
    EventIngestion,
    /// Service reference 4.2.
    AuditLogs,
}

impl Target {
    /// `token`, or the endpoint's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::EventDelivery => "event_delivery",
            Self::EventIngestion => "event_ingestion",
            Self::AuditLogs => "audit_logs",
        }
    }
}

/// An API call that needs a token of one API.
pub(crate) trait Endpoint: Send + 'static {
    /// The API whose tokens it takes.
    type Audience: Audience;
    /// What reads its response.
    type Body: Body;

    fn target(&self) -> Target;
    /// The time that is asked about, where there is one.
    fn window(&self) -> Option<Window>;
    fn request(&self, base: &BaseAddress, token: &AccessToken<Self::Audience>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}
