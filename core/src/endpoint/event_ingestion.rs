//! Event ingestion metrics (service reference 4.5).
//!
//! `POST {cluster_endpoint}/v1.1/analytics/event_ingestion`: the headers, the body and (by the
//! assumption `same_ingestion_result`) the response are the same as for event delivery. There is no
//! dimension `reason`: [`Metric::has`] refuses it before anything is sent.

use super::contract::Client;
use super::metrics::{MetricsEndpoint, MetricsQuery, QueryOptions};
use crate::counts::metric::Metric;
use crate::error::Result;

pub(super) const ENDPOINT: MetricsEndpoint =
    MetricsEndpoint { metric: Metric::EventIngestion, path: "/v1.1/analytics/event_ingestion" };

pub(crate) fn query(options: &QueryOptions, client: &Client<'_>) -> Result<MetricsQuery> {
    options.check(&ENDPOINT, client)
}
