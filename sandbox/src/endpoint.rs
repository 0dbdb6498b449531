//! The endpoints. The list below has an entry for each of them, and the files in `endpoint/` answer their requests.

mod analytics;
mod audit_logs;
pub(crate) mod tokens;

use serde::Serialize;
use tallyfold::Now;

use crate::events::Events;
use crate::options::{Api, SandboxOptions};
use crate::response::SandboxResponse;
use analytics::Metric;
use tokens::Tokens;

/// The properties of requests to an endpoint.
pub(crate) struct Route {
    /// The only method that the endpoint accepts.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The API whose token a request needs; `None` at the endpoints that issue tokens.
    pub(crate) token: Option<Api>,
    /// Whether the response has a total.
    pub(crate) has_total: bool,
    pub(crate) answer: fn(Asked<'_>) -> SandboxResponse,
}

/// A valid request, and the parts of the sandbox that answer it.
pub(crate) struct Asked<'a> {
    pub(crate) query: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) now: Now,
    /// What is added to a total to make it wrong.
    pub(crate) excess: u64,
    pub(crate) options: &'a SandboxOptions,
    pub(crate) tokens: &'a mut Tokens,
    pub(crate) events: &'a mut Events,
}

/// Generates everything that exists once for each endpoint.
macro_rules! endpoints {
    ($( $(#[doc = $doc:literal])+ $Endpoint:ident = $name:literal in $field:ident: $route:expr, )+) => {
        tallyfold::names! {
            /// An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
            /// `cluster_endpoint`, `base_url` and `auth_url` alike.
            #[non_exhaustive]
            pub enum SandboxEndpoint { $( $(#[doc = $doc])+ $Endpoint = $name, )+ }
        }

        impl SandboxEndpoint {
            pub(crate) const fn route(self) -> &'static Route {
                match self { $( Self::$Endpoint => const { &$route }, )+ }
            }
        }

        /// How many requests each endpoint has received, whatever the response. Requests with another method are not counted.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct SandboxStats { $(
            /// Requests to this endpoint:
            $(#[doc = $doc])+
            pub $field: u32,
        )+ }

        impl SandboxStats {
            pub(crate) fn add(&mut self, endpoint: SandboxEndpoint) {
                *match endpoint { $( SandboxEndpoint::$Endpoint => &mut self.$field, )+ } += 1;
            }
        }
    };
}

endpoints! {
    /// A Control API token (service reference 4.3).
    ControlToken = "control_token" in control_token: Route {
        method: "POST",
        path: "/v1.1/oauth/token",
        token: None,
        has_total: false,
        answer: |asked| asked.tokens.mint(Api::Control, asked.body, asked.options, asked.now),
    },
    /// An Orchestration API token (service reference 4.1).
    OrchestrationToken = "orchestration_token" in orchestration_token: Route {
        method: "POST",
        path: "/oauth/token",
        token: None,
        has_total: false,
        answer: |asked| asked.tokens.mint(Api::Orchestration, asked.body, asked.options, asked.now),
    },
    /// Event delivery metrics (service reference 4.4).
    EventDelivery = "event_delivery" in event_delivery: Route {
        method: "POST",
        path: "/v1.1/analytics/event_delivery",
        token: Some(Api::Control),
        has_total: true,
        answer: |asked| analytics::answer(Metric::EventDelivery, asked.body, asked.events, asked.excess),
    },
    /// Event ingestion metrics (service reference 4.5).
    EventIngestion = "event_ingestion" in event_ingestion: Route {
        method: "POST",
        path: "/v1.1/analytics/event_ingestion",
        token: Some(Api::Control),
        has_total: true,
        answer: |asked| analytics::answer(Metric::EventIngestion, asked.body, asked.events, asked.excess),
    },
    /// The audit-log listing (service reference 4.2).
    AuditLogs = "audit_logs" in audit_logs: Route {
        method: "GET",
        path: "/api/v1/audit-logs",
        token: Some(Api::Orchestration),
        has_total: false,
        answer: |asked| audit_logs::answer(asked.query),
    },
}

impl SandboxEndpoint {
    /// The endpoint with exactly this path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|endpoint| endpoint.route().path == path)
    }
}
