//! The endpoints: each is a file, named as the service names it, and a line in the list below. The file has what is sent, what
//! is checked, and the options.
//!
//! The other files hold what endpoints share: `contract` is the interface of all and has the types of their results, `json`
//! reads a document whose shape is unknown, `metrics` belongs to the two analytics endpoints, and `token_response` to the two
//! token endpoints.

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

/// Hands the list of all endpoints to a macro, the token endpoints aside. Each has its meaning, its name, its file, the type
/// of its options, and the type of its result. Everything that exists once for each endpoint follows from this list: the
/// methods of [`Machine`](crate::Machine), the bindings, and what `scripts/declare.py` writes.
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

/// The endpoint that has the counts of a metric.
pub(crate) fn endpoint_of(metric: Metric) -> &'static MetricsEndpoint {
    match metric {
        Metric::EventDelivery => &event_delivery::ENDPOINT,
        Metric::EventIngestion => &event_ingestion::ENDPOINT,
    }
}
