//! The endpoints. Each has a file, which is named as the service names the endpoint, and a line in the list below. The file
//! contains the request, the checks and the options.
//!
//! The other files contain what endpoints share: `contract` is the interface of all endpoints and has the types of their
//! results, `json` reads a document whose shape is unknown, `metrics` belongs to the two analytics endpoints, and
//! `token_response` to the two token endpoints.

pub(crate) mod audit_logs;
pub(crate) mod contract;
pub(crate) mod control_token;
pub(crate) mod event_delivery;
pub(crate) mod event_ingestion;
mod json;
pub(crate) mod metrics;
pub(crate) mod orchestration_token;
pub(crate) mod token_response;

pub use audit_logs::AuditLogsOptions;
pub use contract::{CallOutput, Json, Output, Token};
pub use metrics::QueryOptions;

use crate::counts::metric::Metric;
use metrics::MetricsEndpoint;

/// Passes the list of all endpoints, except the token endpoints, to a macro. A line of the list has the endpoint's meaning,
/// name, file, type of options, and type of result. Everything that exists once for each endpoint is generated from this
/// list: the methods of [`Machine`](crate::Machine), the bindings, and what `scripts/declare.py` writes.
#[macro_export]
#[doc(hidden)]
macro_rules! each_endpoint {
    ($to:ident) => {
        $to! {
            /// Event delivery metrics (service reference 4.4).
            EventDelivery = "event_delivery" in event_delivery: QueryOptions -> CountTable,
            /// Event ingestion metrics (service reference 4.5).
            EventIngestion = "event_ingestion" in event_ingestion: QueryOptions -> CountTable,
            /// The audit-log listing (service reference 4.2).
            AuditLogs = "audit_logs" in audit_logs: AuditLogsOptions -> Json,
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $Target:ident = $name:literal in $file:ident: $Options:ident -> $Output:ident,)+) => {
        crate::names! {
            /// The destination of a request: a token endpoint, or an endpoint of an API.
            #[non_exhaustive]
            pub enum Target {
                /// A token endpoint (service reference 4.1 and 4.3).
                Token = "token",
                $( $(#[$doc])* $Target = $name, )+
            }
        }
    };
}
each_endpoint!(declare);

impl From<Metric> for Target {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::EventDelivery => Self::EventDelivery,
            Metric::EventIngestion => Self::EventIngestion,
        }
    }
}

/// The endpoint that returns the counts of a metric.
pub(crate) fn endpoint_of(metric: Metric) -> &'static MetricsEndpoint {
    match metric {
        Metric::EventDelivery => &event_delivery::ENDPOINT,
        Metric::EventIngestion => &event_ingestion::ENDPOINT,
    }
}
