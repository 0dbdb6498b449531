//! Event delivery metrics (service reference 4.4).
//!
//! `POST {cluster_endpoint}/v1.1/analytics/event_delivery` with a Control API token and a JSON body
//! of `start`, `end` and `dimensions`, any of the four. The response is the event metrics result
//! (2.2), which [`fold`](crate::fold) reads and checks against the requested window and dimensions.

use super::metrics::MetricsEndpoint;
use super::target::Target;
use crate::counts::metric::Metric;

/// The endpoint.
pub(super) const ENDPOINT: MetricsEndpoint = MetricsEndpoint {
    metric: Metric::EventDelivery,
    target: Target::EventDelivery,
    path: "/v1.1/analytics/event_delivery",
};
