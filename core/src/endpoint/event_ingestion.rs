//! Event ingestion metrics (service reference 4.5).
//!
//! `POST {cluster_endpoint}/v1.1/analytics/event_ingestion`: headers, body and, by assumption
//! `same_ingestion_result`, the response of event delivery, but without the dimension `reason`, which
//! [`Metric::has`] refuses before anything is sent.

use super::metrics::MetricsEndpoint;
use super::target::Target;
use crate::counts::metric::Metric;

/// The endpoint.
pub(super) const ENDPOINT: MetricsEndpoint = MetricsEndpoint {
    metric: Metric::EventIngestion,
    target: Target::EventIngestion,
    path: "/v1.1/analytics/event_ingestion",
};
