//! How many requests each endpoint has had.

use serde::Serialize;

use crate::endpoint::SandboxEndpoint;

/// How many requests each endpoint has had, whatever the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct SandboxStats {
    /// Requests for a Control API token.
    pub control_token: u32,
    /// Requests for an Orchestration API token.
    pub orchestration_token: u32,
    /// Requests for event delivery metrics.
    pub event_delivery: u32,
    /// Requests for event ingestion metrics.
    pub event_ingestion: u32,
    /// Requests for audit logs.
    pub audit_logs: u32,
}

impl SandboxStats {
    pub(crate) fn add(&mut self, endpoint: SandboxEndpoint) {
        *match endpoint {
            SandboxEndpoint::ControlToken => &mut self.control_token,
            SandboxEndpoint::OrchestrationToken => &mut self.orchestration_token,
            SandboxEndpoint::EventDelivery => &mut self.event_delivery,
            SandboxEndpoint::EventIngestion => &mut self.event_ingestion,
            SandboxEndpoint::AuditLogs => &mut self.audit_logs,
        } += 1;
    }
}
