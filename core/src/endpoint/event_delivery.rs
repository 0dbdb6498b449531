//! Event delivery metrics (service reference 4.4).

/// `POST {cluster_endpoint}/v1.1/analytics/event_delivery`.
pub(super) const PATH: &str = "/v1.1/analytics/event_delivery";
