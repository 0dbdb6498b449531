//! What a check or a replay gives.

use serde::Serialize;
use tallyfold::{CountTable, Window};

use super::finding::Finding;
use super::state::State;

/// The counts that rules are applied to, with their history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// Counts of delivery.
    pub delivery: Option<&'a CountTable>,
    /// Counts of ingestion.
    pub ingestion: Option<&'a CountTable>,
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Check {
    /// What is firing, pending or just resolved: firing first, then by severity, and then by how much the counts say. So of
    /// several findings about one incident, the first names its cause best.
    pub findings: Vec<Finding>,
    /// How many windows of groups were judged, of all rules together.
    pub judged: u64,
    /// Whether nothing fires that is at least a warning, is not silenced and is not provisional.
    pub healthy: bool,
    /// Rules that could not judge anything, with the reason.
    pub unjudged: Vec<Unjudged>,
    /// How many findings were left out, because there are too many.
    pub left_out: u64,
    /// What the next check has to know.
    #[serde(skip)]
    pub state: State,
}

/// A rule that could not judge anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Unjudged {
    /// The name of the rule.
    pub rule: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// What checks would have found in a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Replay {
    /// Each finding as it was when it fired first, with when it was resolved, in the order of time and then as in [`Check`]. What was never more
    /// than pending is left out.
    pub findings: Vec<Finding>,
    /// How many windows of groups were judged, of all rules together.
    pub judged: u64,
    /// The range.
    pub range: Window,
    /// Rules that could not judge anything, with the reason.
    pub unjudged: Vec<Unjudged>,
    /// How many findings were left out, because there are too many.
    pub left_out: u64,
}
