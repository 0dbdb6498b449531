//! Event delivery metrics (service reference 4.4).
//!
//! `POST {cluster_endpoint}/v1.1/analytics/event_delivery` with a Control API token and a JSON body
//! of `start`, `end` and `dimensions`, any of the four. The response is the event metrics result
//! (2.2), which [`fold`](crate::fold) reads and checks against the requested window and dimensions.

use super::contract::Client;
use super::metrics::{MetricsEndpoint, MetricsQuery, QueryOptions};
use crate::counts::metric::Metric;
use crate::error::Result;

pub(super) const ENDPOINT: MetricsEndpoint =
    MetricsEndpoint { metric: Metric::EventDelivery, path: "/v1.1/analytics/event_delivery" };

pub(crate) fn query(options: &QueryOptions, client: &Client<'_>) -> Result<MetricsQuery> {
    options.check(&ENDPOINT, client)
}
