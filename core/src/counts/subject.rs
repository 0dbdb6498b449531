//! What a table counts.

use super::dimension::Dimensions;
use super::identity::Identity;
use super::metric::Metric;
use super::selection::Selection;
use crate::code::Code;
use crate::error::{Error, Result};

/// What a table counts: the dimensions of its rows, the endpoint that the counts are from, the filter,
/// and whose counts they are.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) dimensions: Dimensions,
    pub(crate) metric: Option<Metric>,
    pub(crate) selection: Selection,
    pub(crate) identity: Identity,
}

impl Subject {
    /// The subject of unfiltered responses.
    pub(crate) fn whole(
        dimensions: Dimensions,
        metric: Option<Metric>,
        identity: Identity,
    ) -> Self {
        Self { dimensions, metric, selection: Selection::default(), identity }
    }

    /// The same subject, grouped by other dimensions.
    pub(crate) fn grouped_by(&self, dimensions: Dimensions) -> Self {
        Self { dimensions, ..self.clone() }
    }

    /// The subject of counts that are added to these.
    pub(crate) fn with(&self, other: &Self, argument: &'static str) -> Result<Self> {
        self.check_like(other, argument)?;
        Ok(Self { identity: self.identity.with(&other.identity, argument)?, ..self.clone() })
    }

    /// Refuses a table that counts something else.
    pub(crate) fn check_like(&self, other: &Self, argument: &'static str) -> Result<()> {
        if self.dimensions != other.dimensions || self.metric != other.metric {
            let message = format!(
                "the tables differ: {:?} of {} and {:?} of {}; group both by the same dimensions",
                self.dimensions,
                self.metric.map_or("an unknown metric", Metric::as_str),
                other.dimensions,
                other.metric.map_or("an unknown metric", Metric::as_str),
            );
            return Err(Error::argument(argument, Code::IncompatibleTables, message));
        }
        if self.selection != other.selection {
            let message = "the tables were filtered by other values, so that their counts are of \
                           other events; filter both alike, or neither";
            return Err(Error::argument(argument, Code::IncompatibleTables, message));
        }
        Ok(())
    }
}

/// Tables with equal counts are equal, even if they belong to different clients.
impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        (self.dimensions, self.metric, &self.selection)
            == (other.dimensions, other.metric, &other.selection)
    }
}

impl Eq for Subject {}
