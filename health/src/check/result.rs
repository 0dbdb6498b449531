//! The result of a check or a replay: findings, the incidents that they belong to, and the rules that could not judge anything.

use serde::Serialize;
use tallyfold::Window;

use super::state::State;
use crate::incidents::finding::Finding;
use crate::incidents::incident::Incident;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Check {
    /// The findings that are firing, unjudged, pending or just resolved, sorted by status (in this order), severity and evidence.
    pub findings: Vec<Finding>,
    /// The incidents that the findings belong to, sorted by status and severity. A receiver of alerts gets one alert for
    /// each incident.
    pub incidents: Vec<Incident>,
    /// How many windows all rules together have judged; each group counts its own windows. Each check judges the windows whose
    /// counts may still change, and counts them again.
    pub judged: u64,
    /// Whether all is well. False if a warning or critical finding fires or is unjudged, unless the finding is silenced or
    /// provisional. Also false if there are no recent counts, or if no rule can judge the counts.
    pub healthy: bool,
    /// Rules that could not judge anything, with the reason.
    pub unjudged: Vec<Unjudged>,
    /// How many findings were left out, because there are too many.
    pub left_out: u64,
    /// The state for the next check.
    #[serde(skip)]
    pub state: State,
}

/// A rule that could not judge anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Unjudged {
    /// The name of the rule, or `recent counts` if the counts are too old to show whether all is well now.
    pub rule: String,
    /// The reason, as a sentence.
    pub reason: String,
}

/// What checks would have found in a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Replay {
    /// Each finding as it was when it began to fire, with the time when it was resolved. The order is chronological;
    /// findings with the same times are sorted by severity and evidence. Findings that were only pending are left out.
    pub findings: Vec<Finding>,
    /// The incidents that the findings belong to, as they were at the end of the range, in chronological order.
    pub incidents: Vec<Incident>,
    /// How many windows all rules together have judged; each group counts its own windows.
    pub judged: u64,
    /// The range.
    pub range: Window,
    /// Rules that could not judge anything, with the reason.
    pub unjudged: Vec<Unjudged>,
    /// How many findings were left out, because there are too many.
    pub left_out: u64,
}
