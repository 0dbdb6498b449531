//! The type of a finding: what a rule has found about a group of events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::{Dimension, Metric, Timestamp, Window};

use crate::cause::explanation::{Amount, Cause};
use crate::measure::Measure;
use crate::rules::kinds::RuleKind;
use crate::rules::names::Severity;

tallyfold::names! {
    /// The stage of a finding or of an incident.
    pub enum Status {
        /// Bad, but not yet for as many windows as the rule requires.
        Pending = "pending",
        /// Bad for as many windows as the rule requires, or more.
        Firing = "firing",
        /// It fired, but later windows have too few events to show whether it is over.
        Unjudged = "unjudged",
        /// It fired and is over, which is reported only once.
        Resolved = "resolved",
    }
}

/// What a rule has found about a group of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Finding {
    /// An identifier of 16 hexadecimal digits that depends only on the rule and the group: a finding that comes back
    /// has the same identifier.
    pub id: String,
    /// The name of the rule.
    pub rule: String,
    /// What the rule looks for.
    pub kind: RuleKind,
    /// The severity of the finding.
    pub severity: Severity,
    /// Whether the finding is pending, firing, unjudged or resolved.
    pub status: Status,
    /// The values of the rule's dimensions.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "BTreeMap<String, String>"))]
    pub group: Vec<(Dimension, String)>,
    /// The time range of the numbers: the last bad window, or several windows that were judged together.
    pub window: Window,
    /// When the finding began: the start of the first bad window.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub since: Timestamp,
    /// When the finding began to fire: the end of the bad window that made it fire; none while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "surface", schemars(with = "Option<String>"))]
    pub fired: Option<Timestamp>,
    /// When the finding ended: the end of the last window that showed no recovery, such as a bad window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "surface", schemars(with = "Option<String>"))]
    pub resolved: Option<Timestamp>,
    /// The end of the last window that had enough events to judge the group.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub seen: Timestamp,
    /// The measure that the rule judges.
    pub measure: Measure,
    /// The counted events.
    pub observed: Amount,
    /// The counted events from `since` until the end of `window`, or until `resolved`. None if that time is longer than two
    /// days (for a resolved finding, a week), if counts are missing, or if this kind of rule has no totals. If a rule has very
    /// many findings, only some of them have totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Amount>,
    /// The expected number of counted events.
    pub expected: f64,
    /// The fewest counted events that would be normal.
    pub low: u64,
    /// The most counted events that would be normal; none without an upper limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<u64>,
    /// The natural logarithm of the probability of these counts if nothing is wrong; none for fixed limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ln_p: Option<f64>,
    /// The parts of the group that explain the finding, most important first.
    pub causes: Vec<Cause>,
    /// For dimensions that the group does not name, the values that nearly all events of the group had on the day before the
    /// finding began, or since then if the group is new; empty if there are causes.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "BTreeMap<String, String>"))]
    pub within: Vec<(Dimension, String)>,
    /// The events of the change that no cause explains.
    pub unexplained: i128,
    /// The earlier time ranges that the finding was compared with to find its causes: the same time in earlier weeks, or
    /// the time just before if the counts of those weeks are unknown. Empty if the finding is not explained.
    pub compared: Vec<Window>,
    /// Whether a silence covers the finding, or its incident is acknowledged or silenced.
    pub silenced: bool,
    /// Whether the counts may still change. The severity of such a finding is at most `warning`.
    pub provisional: bool,
    /// The labels of the rules file and of the rule.
    pub labels: BTreeMap<String, String>,
    /// The note of the rule, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The address of the rule's runbook, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
    /// The identifier of the finding's incident; none while the finding is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<String>,
    /// The finding in one sentence.
    pub sentence: String,
    /// The query for the counts of the finding.
    pub query: Query,
}

/// The query for the counts of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Query {
    /// The endpoint.
    pub metric: Metric,
    /// The start of the range.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub start: Timestamp,
    /// The end of the range.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub end: Timestamp,
    /// The dimensions to group by.
    pub dimensions: Vec<Dimension>,
    /// The values to keep, by dimension.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "BTreeMap<String, Vec<String>>"))]
    pub r#where: Vec<(Dimension, Vec<String>)>,
}
