//! Which endpoint a request is for, and how many requests each has had.

use crate::dimension::Metric;

/// An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
/// `cluster_endpoint`, `base_url` and `auth_url` alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SandboxEndpoint {
    /// A Control API token (service reference 4.3).
    ControlToken,
    /// An Orchestration API token (service reference 4.1).
    OrchestrationToken,
    /// Event delivery metrics (service reference 4.4).
    EventDelivery,
    /// Event ingestion metrics (service reference 4.5).
    EventIngestion,
    /// The audit-log listing (service reference 4.2).
    AuditLogs,
}

/// The two APIs, each with an audience of its own (service reference 5.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Control,
    Orchestration,
}

/// What an endpoint does.
#[derive(Clone, Copy)]
pub(super) enum Task {
    Mint(Api),
    Count(Metric),
    ListAuditLogs,
}

impl SandboxEndpoint {
    /// Every endpoint.
    pub const ALL: [Self; 5] = [
        Self::ControlToken,
        Self::OrchestrationToken,
        Self::EventDelivery,
        Self::EventIngestion,
        Self::AuditLogs,
    ];

    /// The endpoint's name in faults and statistics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControlToken => "control_token",
            Self::OrchestrationToken => "orchestration_token",
            Self::EventDelivery => "event_delivery",
            Self::EventIngestion => "event_ingestion",
            Self::AuditLogs => "audit_logs",
        }
    }

    /// The endpoint of that exact name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.as_str() == name)
    }

    /// The endpoint of that exact path.
    pub(super) fn at(path: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.route().1 == path)
    }

    /// The only method that the endpoint answers, its path, and what it does.
    pub(super) const fn route(self) -> (&'static str, &'static str, Task) {
        match self {
            Self::ControlToken => ("POST", "/v1.1/oauth/token", Task::Mint(Api::Control)),
            Self::OrchestrationToken => ("POST", "/oauth/token", Task::Mint(Api::Orchestration)),
            Self::EventDelivery => (
                "POST",
                "/v1.1/analytics/event_delivery",
                Task::Count(Metric::EventDelivery),
            ),
            Self::EventIngestion => (
                "POST",
                "/v1.1/analytics/event_ingestion",
                Task::Count(Metric::EventIngestion),
            ),
            Self::AuditLogs => ("GET", "/api/v1/audit-logs", Task::ListAuditLogs),
        }
    }
}

/// How many requests each endpoint has had, whatever the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxStats {
    /// Requests for a Control API token.
    pub control_token: u64,
    /// Requests for an Orchestration API token.
    pub orchestration_token: u64,
    /// Requests for event delivery metrics.
    pub event_delivery: u64,
    /// Requests for event ingestion metrics.
    pub event_ingestion: u64,
    /// Requests for audit logs.
    pub audit_logs: u64,
}

impl SandboxStats {
    pub(super) fn add(&mut self, endpoint: SandboxEndpoint) {
        *match endpoint {
            SandboxEndpoint::ControlToken => &mut self.control_token,
            SandboxEndpoint::OrchestrationToken => &mut self.orchestration_token,
            SandboxEndpoint::EventDelivery => &mut self.event_delivery,
            SandboxEndpoint::EventIngestion => &mut self.event_ingestion,
            SandboxEndpoint::AuditLogs => &mut self.audit_logs,
        } += 1;
    }
}
