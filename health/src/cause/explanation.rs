//! What explains a change.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::measure::Measure;

/// What explains a change: causes that were named, and by how many events exactly.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// What changed.
    pub measure: Measure,
    /// All events before.
    pub before: Amount,
    /// All events now.
    pub now: Amount,
    /// By how many events the count of now differs from the expected one: for a volume, the count before; for a rate, the count at
    /// the rate before.
    pub change: i128,
    /// The causes, most important first. No event belongs to two of them: the counts of each are those of the events that no
    /// cause before it has.
    pub causes: Vec<Cause>,
    /// Further candidates that were not named, best first. They may overlap with causes and with each other.
    pub others: Vec<Cause>,
    /// The events of the change that belong to no cause: `change` less the `events` of all causes.
    pub unexplained: i128,
    /// Whether nothing narrower than everything explains the change.
    pub is_global: bool,
    /// The same in one sentence.
    pub sentence: String,
}

/// A combination of attribute values, and what it explains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Cause {
    /// The values, in the order of the attributes. Attributes that are not named may have any value.
    #[serde(serialize_with = "as_map")]
    #[cfg_attr(
        feature = "surface",
        schemars(with = "std::collections::BTreeMap<String, String>")
    )]
    pub r#where: Vec<(String, String)>,
    /// Its events before.
    pub before: Amount,
    /// Its events now.
    pub now: Amount,
    /// How many events of the part were expected now.
    pub expected: f64,
    /// By how many events now differs from that, rounded to whole events.
    pub events: i128,
    /// The part of the whole change that these events are; 0 if there is no change.
    pub share: f64,
    /// How much better the counts are explained with this cause than without any: a difference of log likelihoods, only for
    /// ranking.
    pub score: f64,
}

/// Events of a group in one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Amount {
    /// The events that are counted.
    pub part: u64,
    /// Of a rate, the events that they are a share of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<u64>,
}

fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
