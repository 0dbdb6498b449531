//! Event ingestion metrics (service reference 4.5).
//!
//! `POST {cluster_endpoint}/v1.1/analytics/event_ingestion`: the headers, the body and (by the
//! assumption `same_ingestion_result`) the response are those of event delivery. There is no
//! dimension `reason`: [`Metric::has`] refuses it before anything is sent.

use super::metrics::MetricsEndpoint;
use super::target::Target;
use crate::counts::metric::Metric;

/// The endpoint.
pub(super) const ENDPOINT: MetricsEndpoint = MetricsEndpoint {
    metric: Metric::EventIngestion,
    target: Target::EventIngestion,
    path: "/v1.1/analytics/event_ingestion",
};
