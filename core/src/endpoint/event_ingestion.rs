//! Event ingestion metrics (service reference 4.5): the same as delivery, without `reason`.

/// `POST {cluster_endpoint}/v1.1/analytics/event_ingestion`.
pub(super) const PATH: &str = "/v1.1/analytics/event_ingestion";
