//! What a command has found, before it is written in any format.

use std::sync::Arc;

use tallyfold::{Comparison, CountTable, Series, Window};

use crate::exit::Exit;
use crate::failure::Failure;

/// Counts of one or more clusters, and what is missing.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was found, in the order of the configuration.
    pub(crate) parts: Vec<Part>,
    /// The clusters of which nothing is known.
    pub(crate) missing: Vec<Missing>,
    /// Whether rows say which cluster they are of.
    pub(crate) is_named: bool,
}

/// The counts of one cluster.
#[derive(Debug)]
pub(crate) struct Part {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Labels of exported counts.
    pub(crate) labels: Vec<(String, String)>,
    /// The counts.
    pub(crate) counts: Counted,
    /// The time that was asked for and could not be read.
    pub(crate) gaps: Vec<Window>,
    /// Why not.
    pub(crate) failure: Option<Failure>,
}

/// Counts.
#[derive(Debug)]
pub(crate) enum Counted {
    /// By dimension.
    Table(CountTable),
    /// By window and dimension.
    Series(Arc<Series>),
    /// Before and after.
    Comparison(Arc<Comparison>),
}

/// A cluster of which nothing is known.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Why.
    pub(crate) failure: Failure,
}

impl Report {
    /// How the command ends: with 6 if anything is missing beside what was found, with the failure's own code if nothing was found.
    pub(crate) fn exit(&self) -> Exit {
        let has_gaps = self.parts.iter().any(|part| !part.gaps.is_empty());
        match self.missing.first() {
            Some(missing) if self.parts.is_empty() => missing.failure.exit,
            Some(_) => Exit::Missing,
            None if has_gaps => Exit::Missing,
            None => Exit::Fine,
        }
    }
}
