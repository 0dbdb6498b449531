//! The options of the analytics endpoints.

use super::metrics::{MetricsEndpoint, MetricsQuery};
use super::{event_delivery, event_ingestion};
use crate::counts::metric::Metric;
use crate::error::Result;
use crate::fold::read_options::ReadOptions;
use crate::time::patience::Patience;
use crate::time::window::Window;

crate::options! {
    /// Which counts to ask for, in one window.
    #[derive(Clone, Debug)]
    pub struct QueryOptions {
        /// The first instant of the window, UTC ISO 8601.
        start: String [Instant],
        /// The first instant after the window.
        ///
        /// The service advises windows of 5 to 15 minutes.
        end: String [Instant],
        /// The dimensions to ask for: one to four of `event_name`, `write_key`, `integration` and `reason`.
        ///
        /// Event ingestion does not have `reason`.
        dimensions: Vec<String>,
        /// The dimensions to keep while the response streams in, in this order; an empty list gives one grand
        /// total.
        ///
        /// By default, all are kept. Memory grows with the number of kept groups, not with the response.
        group_by: Option<Vec<String>> = None,
        /// How long the call may take with all its requests and waits, counted from its first step.
        ///
        /// It then ends with `deadline_exceeded`.
        deadline_ms: Patience = Patience::Endless,
    }
}

/// The endpoint that has those counts.
pub(crate) fn endpoint_of(metric: Metric) -> &'static MetricsEndpoint {
    match metric {
        Metric::EventDelivery => &event_delivery::ENDPOINT,
        Metric::EventIngestion => &event_ingestion::ENDPOINT,
    }
}

impl QueryOptions {
    /// A query that keeps all of its dimensions.
    #[must_use]
    pub fn new<S: AsRef<str>>(start: &str, end: &str, dimensions: &[S]) -> Self {
        let dimensions = dimensions
            .iter()
            .map(|name| name.as_ref().to_owned())
            .collect();
        Self::with_defaults(start.to_owned(), end.to_owned(), dimensions)
    }

    /// Checks the options and makes a query.
    pub(crate) fn check(&self, metric: Metric, options: ReadOptions) -> Result<MetricsQuery> {
        let window = Window::parse(&self.start, &self.end)?;
        let group_by = self.group_by.as_deref();
        MetricsQuery::new(
            endpoint_of(metric),
            window,
            &self.dimensions,
            group_by,
            options,
        )
    }
}
