//! Which endpoint a request is for.

tallyfold::names! {
    /// An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
    /// `cluster_endpoint`, `base_url` and `auth_url` alike.
    #[non_exhaustive]
    pub enum SandboxEndpoint {
        /// A Control API token (service reference 4.3).
        ControlToken = "control_token",
        /// An Orchestration API token (service reference 4.1).
        OrchestrationToken = "orchestration_token",
        /// Event delivery metrics (service reference 4.4).
        EventDelivery = "event_delivery",
        /// Event ingestion metrics (service reference 4.5).
        EventIngestion = "event_ingestion",
        /// The audit-log listing (service reference 4.2).
        AuditLogs = "audit_logs",
    }
}

/// The two APIs, each with an audience of its own (service reference 5.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Control,
    Orchestration,
}

/// What is counted. Assumption `ingestion_counts`: the same for both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    EventDelivery,
    EventIngestion,
}

/// What an endpoint does.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    Mint(Api),
    Count(Metric),
    ListAuditLogs,
}

impl SandboxEndpoint {
    /// The endpoint of that exact path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|endpoint| endpoint.route().1 == path)
    }

    /// The only method that the endpoint answers, its path, and what it does.
    pub(crate) const fn route(self) -> (&'static str, &'static str, Task) {
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
