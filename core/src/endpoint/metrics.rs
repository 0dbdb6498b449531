//! What event_delivery and event_ingestion have in common: request body and result.

use serde::Serialize;

use super::{Body, Endpoint, Output, Target, event_delivery, event_ingestion};
use crate::dimension::{Dimensions, Metric};
use crate::error::Result;
use crate::fold::{Aggregator, ReadOptions};
use crate::http::{BaseAddress, Request};
use crate::secret::Secret;
use crate::token::{AccessToken, Control};
use crate::window::Window;

/// A checked query of one of the two analytics endpoints.
#[derive(Clone, Debug)]
pub(crate) struct MetricsQuery {
    metric: Metric,
    window: Window,
    requested: Dimensions,
    kept: Dimensions,
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
    /// Checks what a caller asks for.
    pub(crate) fn new<S: AsRef<str>>(
        metric: Metric,
        start: &str,
        end: &str,
        dimensions: &[S],
        group_by: Option<&[S]>,
        options: ReadOptions,
    ) -> Result<Self> {
        let window = Window::parse(start, end)?;
        Self::of_window(metric, window, dimensions, group_by, options)
    }

    /// The same for a window that is known.
    pub(crate) fn of_window<S: AsRef<str>>(
        metric: Metric,
        window: Window,
        dimensions: &[S],
        group_by: Option<&[S]>,
        options: ReadOptions,
    ) -> Result<Self> {
        let requested = Dimensions::requested(dimensions)?;
        requested.check_available(metric)?;
        let kept = match group_by {
            Some(names) => requested.subset(names)?,
            None => requested,
        };
        Ok(Self {
            metric,
            window,
            requested,
            kept,
            options,
        })
    }

    /// The same query of another window.
    pub(crate) fn of(self, window: Window) -> Self {
        Self { window, ..self }
    }

    pub(crate) fn metric(&self) -> Metric {
        self.metric
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The dimensions that are asked for.
    pub(crate) fn requested(&self) -> &Dimensions {
        &self.requested
    }

    /// Those of them that are kept.
    pub(crate) fn kept(&self) -> &Dimensions {
        &self.kept
    }
}

impl Endpoint for MetricsQuery {
    type Audience = Control;
    type Body = Aggregator;

    fn target(&self) -> Target {
        match self.metric {
            Metric::EventDelivery => Target::EventDelivery,
            Metric::EventIngestion => Target::EventIngestion,
        }
    }

    fn window(&self) -> Option<Window> {
        Some(self.window)
    }

    fn request(&self, cluster_endpoint: &BaseAddress, token: &AccessToken<Control>) -> Request {
        let path = match self.metric {
            Metric::EventDelivery => event_delivery::PATH,
            Metric::EventIngestion => event_ingestion::PATH,
        };
        let fields = Fields {
            start: self.window.start().to_string(),
            end: self.window.end().to_string(),
            dimensions: self.requested.names(),
        };
        // Only strings are written, which can't fail.
        let body = serde_json::to_string(&fields).unwrap_or_default();
        Request::post_json(cluster_endpoint.join(path), Secret::from(body)).bearing(token.value())
    }

    fn body(&self) -> Aggregator {
        Aggregator::of_parts(
            self.requested,
            self.kept,
            Some(self.window),
            Some(self.metric),
            self.options,
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
