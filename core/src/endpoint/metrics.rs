//! What event_delivery and event_ingestion have in common: the request's body, and the result.

use serde::Serialize;

use super::contract::{Body, Endpoint, Output};
use super::target::Target;
use crate::access::api::Control;
use crate::access::token::AccessToken;
use crate::counts::dimension::Dimensions;
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::fold::aggregator::Aggregator;
use crate::fold::read_options::ReadOptions;
use crate::fold::shape::is_named;
use crate::secret::Secret;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::json::path::Shown;
use crate::wire::json::writer::json_of;
use crate::wire::request::Request;

/// One of the two analytics endpoints.
#[derive(Debug)]
pub(crate) struct MetricsEndpoint {
    pub(super) metric: Metric,
    pub(super) target: Target,
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

/// The request body, in the order of the reference's table.
#[derive(Serialize)]
struct Fields {
    start: String,
    end: String,
    dimensions: Vec<&'static str>,
}

impl MetricsQuery {
    /// Checks a caller's options.
    pub(crate) fn new<S: AsRef<str>>(
        endpoint: &'static MetricsEndpoint,
        window: Window,
        dimensions: &[S],
        group_by: Option<&[S]>,
        options: ReadOptions,
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
            identity: Identity::default(),
            options,
        })
    }

    /// How many bytes the table of a response may take.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.options.limits.table_bytes
    }

    /// The same query, whose table may take so many bytes at most.
    pub(crate) fn within(mut self, table_bytes: u64) -> Self {
        let limit = &mut self.options.limits.table_bytes;
        *limit = table_bytes.min(*limit);
        self
    }

    /// The same query of a client with this identity.
    pub(crate) fn of_identity(self, identity: &Identity) -> Self {
        Self {
            identity: identity.clone(),
            ..self
        }
    }

    /// Whose counts it reads.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The body of the request: equal for equal questions.
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

    fn target(&self) -> Target {
        self.endpoint.target
    }

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
