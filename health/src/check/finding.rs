//! What a check or a replay gives: its findings, and what it could not judge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::{Dimension, Metric, Timestamp, Window};

use super::state::State;
use crate::cause::explanation::{Amount, Cause};
use crate::measure::Measure;
use crate::rules::kinds::RuleKind;
use crate::rules::names::Severity;

tallyfold::names! {
    /// How far a finding is.
    pub enum Status {
        /// Bad, but not for as many windows as the rule wants.
        Pending = "pending",
        /// Bad for as many windows as the rule wants, or more.
        Firing = "firing",
        /// It fired, and is over. A finding is reported so only once.
        Resolved = "resolved",
    }
}

/// What a rule has found about a group of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Finding {
    /// An identifier of 16 hexadecimal digits that depends only on the rule and the group: a finding that comes back has the same.
    pub id: String,
    /// The name of the rule.
    pub rule: String,
    /// What the rule looks for.
    pub kind: RuleKind,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it is pending, firing or resolved.
    pub status: Status,
    /// The values of the rule's dimensions.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "BTreeMap<String, String>"))]
    pub group: Vec<(Dimension, String)>,
    /// The time that the numbers are about: the last bad window, or several that were judged together.
    pub window: Window,
    /// When it began: the start of the first bad window.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub since: Timestamp,
    /// When it began to fire: the end of that window. None while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "surface", schemars(with = "Option<String>"))]
    pub fired: Option<Timestamp>,
    /// When it ended: the end of the last bad window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "surface", schemars(with = "Option<String>"))]
    pub resolved: Option<Timestamp>,
    /// What is judged.
    pub measure: Measure,
    /// The events that were counted.
    pub observed: Amount,
    /// How many events of the part were expected.
    pub expected: f64,
    /// The fewest events of the part that would be normal.
    pub low: u64,
    /// The most events of the part that would be normal.
    pub high: u64,
    /// The natural logarithm of the probability of what was counted if all is normal; none for fixed limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ln_p: Option<f64>,
    /// Which parts of the group explain it, most important first.
    pub causes: Vec<Cause>,
    /// The events of the change that no cause explains.
    pub unexplained: i128,
    /// Whether a silence covers it.
    pub silenced: bool,
    /// Whether its counts may still change. Such a finding is a warning at most.
    pub provisional: bool,
    /// The labels of the file and of the rule.
    pub labels: BTreeMap<String, String>,
    /// The note of the rule, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The address of the rule's runbook, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
    /// The finding in one sentence.
    pub sentence: String,
    /// The query that gets its counts.
    pub query: Query,
}

/// The query that gets the counts of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Query {
    /// The endpoint.
    pub metric: Metric,
    /// The start of its range.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub start: Timestamp,
    /// The end of its range.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub end: Timestamp,
    /// The dimensions to group by.
    pub dimensions: Vec<Dimension>,
    /// The values to keep, by dimension.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "BTreeMap<String, Vec<String>>"))]
    pub r#where: Vec<(Dimension, Vec<String>)>,
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
