//! What event_delivery and event_ingestion have in common: their options, the request's body, and the result.

use serde::Serialize;

use super::contract::{Body, Client, Endpoint, Output};
use crate::access::api::Control;
use crate::access::token::AccessToken;
use crate::counts::dimension::{Dimension, Dimensions};
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::fold::aggregator::Aggregator;
use crate::fold::read_options::ReadOptions;
use crate::fold::shape::is_named;
use crate::secret::Secret;
use crate::time::patience::Patience;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::json::path::Shown;
use crate::wire::json::writer::json_of;
use crate::wire::request::Request;

crate::options! {
    /// Which counts to request, in one window (service reference 4.4 and 4.5).
    #[derive(Clone, Debug)]
    pub struct QueryOptions {
        /// The start of the window, UTC ISO 8601.
        start: Timestamp,
        /// The end of the window, which is not part of it.
        ///
        /// The service advises windows of 5 to 15 minutes.
        end: Timestamp,
        /// The dimensions to request: one to four of `event_name`, `write_key`, `integration` and `reason`.
        ///
        /// Event ingestion does not have `reason`.
        dimensions: Vec<Dimension>,
        /// The dimensions to keep while the response streams in, in this order; an empty list gives one grand
        /// total.
        ///
        /// By default, all are kept. Memory grows with the number of kept groups, not with the response.
        group_by: Option<Vec<Dimension>> = None,
        /// How long the whole call may take, including retries and waits, counted from its start.
        ///
        /// After that, it fails with `deadline_exceeded`.
        deadline_ms: Patience = Patience::Endless,
    }
}

impl QueryOptions {
    /// A query that keeps all of its dimensions.
    #[must_use]
    pub fn new(window: Window, dimensions: &[Dimension]) -> Self {
        Self::with_defaults(window.start(), window.end(), dimensions.to_owned())
    }

    /// Checks the options and makes a query.
    pub(crate) fn check(
        &self,
        endpoint: &'static MetricsEndpoint,
        client: &Client<'_>,
    ) -> Result<MetricsQuery> {
        let window = Window::new(self.start, self.end)?;
        let group_by = self.group_by.as_deref();
        MetricsQuery::new(endpoint, window, &self.dimensions, group_by, client)
    }
}

/// One of the two analytics endpoints.
#[derive(Debug)]
pub(crate) struct MetricsEndpoint {
    pub(super) metric: Metric,
    pub(crate) path: &'static str,
}

/// A checked query of an analytics endpoint.
#[derive(Clone, Debug)]
pub(crate) struct MetricsQuery {
    endpoint: &'static MetricsEndpoint,
    window: Window,
    requested: Dimensions,
    kept: Dimensions,
    identity: Identity,
    options: ReadOptions,
}

/// The request body, with its fields in the order of the reference's table.
#[derive(Serialize)]
struct Fields {
    start: String,
    end: String,
    dimensions: Vec<&'static str>,
}

impl MetricsQuery {
    /// Checks a caller's options.
    pub(crate) fn new(
        endpoint: &'static MetricsEndpoint,
        window: Window,
        dimensions: &[Dimension],
        group_by: Option<&[Dimension]>,
        client: &Client<'_>,
    ) -> Result<Self> {
        let requested = Dimensions::requested(dimensions)?;
        requested.check_available(endpoint.metric)?;
        let kept = match group_by {
            Some(names) => requested.subset(names)?,
            None => requested,
        };
        Ok(Self {
            endpoint,
            window,
            requested,
            kept,
            identity: client.identity.clone(),
            options: client.reading,
        })
    }

    /// A query for the same counts that requests these dimensions, which must include the kept ones.
    pub(crate) fn requesting(self, dimensions: &[Dimension]) -> Result<Self> {
        let requested = Dimensions::requested(dimensions)?;
        requested.check_available(self.metric())?;
        requested.subset(self.kept.as_slice())?;
        Ok(Self { requested, ..self })
    }

    /// How many bytes the table of a response may take.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.options.limits.table_bytes
    }

    /// The same query, whose table may take at most `table_bytes` bytes.
    pub(crate) fn within(mut self, table_bytes: u64) -> Self {
        let limit = &mut self.options.limits.table_bytes;
        *limit = table_bytes.min(*limit);
        self
    }

    /// Whose counts it reads.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The body of the request. Equal queries have equal bodies.
    pub(crate) fn text(&self) -> String {
        json_of(&Fields {
            start: self.window.start().to_string(),
            end: self.window.end().to_string(),
            dimensions: self.requested.names(),
        })
    }

    /// The same query for another window.
    pub(crate) fn of(self, window: Window) -> Self {
        Self { window, ..self }
    }

    pub(crate) fn metric(&self) -> Metric {
        self.endpoint.metric
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The requested dimensions.
    pub(crate) fn requested(&self) -> &Dimensions {
        &self.requested
    }

    /// What its table counts.
    pub(crate) fn subject(&self) -> Subject {
        Subject::whole(self.kept, Some(self.metric()), self.identity.clone())
    }
}

impl Endpoint for MetricsQuery {
    type Audience = Control;
    type Body = Aggregator;
    type Output = CountTable;

    fn window(&self) -> Option<Window> {
        Some(self.window)
    }

    fn request(
        &self,
        cluster_endpoint: &BaseAddress,
        token: Option<&AccessToken<Control>>,
    ) -> Request {
        let url = cluster_endpoint.join(self.endpoint.path);
        Request::post_json(url, Secret::from(self.text())).bearing(token.map(AccessToken::value))
    }

    fn body(&self) -> Aggregator {
        Aggregator::of_parts(
            self.requested,
            self.subject(),
            Some(self.window),
            self.options,
            Shown::Named(is_named),
        )
    }
}

impl Body for Aggregator {
    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        Self::push(self, chunk)
    }

    fn finish(&mut self) -> Result<Output> {
        Self::finish(self).map(Output::Table)
    }
}
