//! The types of the JSON document, which also define its schema.
//!
//! A count is a JSON number up to 2^53 - 1, and a string of digits above. Many JSON readers silently round larger numbers, so
//! larger counts must be strings. All other counts are numbers, because users could forget to convert strings before they
//! compare them: `"5" > 100` is true in jq. Adding such a string to a number fails in jq and Python, so no sum is silently wrong.
//! NDJSON writes counts in the same way.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use tallyfold::{Dimension, Metric, Presence, RankBy, Rates, Shares, Window};

/// The largest integer that is safe in JSON. Many readers store numbers as 64-bit floats, which represent all integers up to
/// this one exactly.
const LARGEST: u64 = (1 << 53) - 1;

/// Returns the schema of a document. Leaves out formats that JSON Schema does not define, such as `uint64`, because validators
/// warn about them.
pub(crate) fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::default().with_transform(RestrictFormats::default());
    settings.into_generator().into_root_schema_for::<T>()
}

/// Counts of one or more clusters.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tallyfold --format json")]
pub(crate) struct ReportDocument<'a> {
    /// The version of this document. The number grows when a member is removed or changes its meaning; members may be
    /// added.
    pub(crate) format: FormatName,
    /// The query.
    pub(crate) asked: AskedDocument<'a>,
    /// How many groups `top` has left out. Totals contain them.
    pub(crate) left_out: u64,
    /// What was found, in the order of the configuration.
    pub(crate) clusters: Vec<ClusterDocument<'a>>,
    /// The clusters without any result.
    pub(crate) missing: Vec<MissingDocument<'a>>,
}

/// The name and the version of a document.
#[derive(Serialize, JsonSchema)]
pub(crate) enum FormatName {
    /// The only version.
    #[serde(rename = "tallyfold-report/1")]
    Report1,
}

/// The query of each cluster.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AskedDocument<'a> {
    /// The metric.
    pub(crate) metric: Metric,
    /// The dimensions, in the order that rows are sorted by.
    #[schemars(with = "&[String]")]
    pub(crate) dimensions: &'a [Dimension],
    /// The values that were kept.
    pub(crate) filter: Vec<FilterDocument<'a>>,
    /// The time range.
    pub(crate) range: Window,
    /// The earlier time range that it is compared with; `null` if nothing is compared.
    pub(crate) before: Option<Window>,
    /// The count or rate that rows are ranked by; `null` if they are sorted by their values.
    pub(crate) order: Option<RankBy>,
    /// How many groups were kept at most; `null` if all.
    pub(crate) top: Option<u64>,
}

/// The values of a dimension that were kept.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FilterDocument<'a> {
    /// The dimension.
    #[schemars(with = "String")]
    pub(crate) dimension: Dimension,
    /// The values. An empty value stands for events without one.
    pub(crate) values: &'a [String],
}

/// What was found for one cluster.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClusterDocument<'a> {
    /// The cluster's name; `default` if it has none.
    pub(crate) cluster: &'a str,
    /// The labels that the configuration gives it.
    pub(crate) labels: Pairs<'a>,
    /// The time ranges of the query that could not be read.
    pub(crate) gaps: &'a [Window],
    /// The windows whose counts may still change.
    pub(crate) provisional: &'a [Window],
    /// Why `gaps` could not be read, or what else is wrong with the counts; `null` if nothing is.
    pub(crate) failure: Option<FailureDocument<'a>>,
    /// The counts.
    #[serde(flatten)]
    pub(crate) counts: CountsDocument<'a>,
}

/// Counts of one cluster.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CountsDocument<'a> {
    /// By dimension.
    Table(TableDocument<'a>),
    /// By window and dimension.
    Series(SeriesDocument<'a>),
    /// Before and after.
    Comparison(ComparisonDocument<'a>),
}

/// Counts by dimension.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TableDocument<'a> {
    /// The time ranges that the counts cover.
    pub(crate) coverage: Vec<Window>,
    /// Whether the totals that the service reports are the sums of its counts.
    pub(crate) reconciliation: ReconciliationDocument,
    /// The sums of all rows, including rows that `top` leaves out.
    pub(crate) totals: CountsOf,
    /// A row for each combination of values.
    pub(crate) rows: Rows<'a, RowDocument<'a>>,
}

/// Counts by window and dimension.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SeriesDocument<'a> {
    /// The windows, including windows without rows.
    pub(crate) windows: Vec<WindowDocument>,
    /// Whether the totals that the service reports are the sums of its counts.
    pub(crate) reconciliation: ReconciliationDocument,
    /// The sums of all rows, including rows that `top` leaves out.
    pub(crate) totals: CountsOf,
    /// A row for each combination of values in each window.
    pub(crate) rows: Rows<'a, SeriesRowDocument<'a>>,
}

/// Counts before and after.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ComparisonDocument<'a> {
    /// The time ranges that the counts before cover.
    pub(crate) before_coverage: &'a [Window],
    /// The time ranges that the counts after cover.
    pub(crate) after_coverage: &'a [Window],
    /// The sums of all rows, including rows that `top` leaves out.
    pub(crate) totals: ChangeOf,
    /// A row for each combination of values.
    pub(crate) rows: Rows<'a, ChangeRowDocument<'a>>,
}

/// A row of a table.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RowDocument<'a> {
    /// The value of each dimension. An empty value stands for events without one.
    pub(crate) dimensions: Pairs<'a>,
    #[serde(flatten)]
    pub(crate) counts: CountsOf,
    /// Fractions of these counts; `null` where there is nothing to divide by.
    pub(crate) rates: Rates,
}

/// A row of a series.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SeriesRowDocument<'a> {
    #[serde(flatten)]
    pub(crate) window: WindowDocument,
    #[serde(flatten)]
    pub(crate) row: RowDocument<'a>,
}

/// A row of a comparison.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangeRowDocument<'a> {
    /// The value of each dimension. An empty value stands for events without one.
    pub(crate) dimensions: Pairs<'a>,
    /// Whether the combination was there before and after.
    pub(crate) presence: Presence,
    #[serde(flatten)]
    pub(crate) counts: ChangeOf,
    /// The share of each total's change that this row causes; `null` where a total has not changed.
    pub(crate) share: Shares,
}

/// A window.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WindowDocument {
    /// The window.
    #[serde(flatten)]
    pub(crate) window: Window,
    /// Whether the counts cover all of it.
    pub(crate) complete: bool,
    /// Whether the counts may still change.
    pub(crate) provisional: bool,
}

/// The three counts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CountsOf {
    /// Events delivered, or ingested.
    pub(crate) success: Count,
    /// Events not sent due to an error.
    pub(crate) errors: Count,
    /// Events filtered.
    pub(crate) filtered: Count,
}

/// Counts before and after, and how they have changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangeOf {
    /// The counts before; `null` if there were none.
    pub(crate) before: Option<CountsOf>,
    /// The counts after; `null` if there were none.
    pub(crate) after: Option<CountsOf>,
    /// The counts after minus the counts before.
    pub(crate) change: ChangesOf,
}

/// The change of each count.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangesOf {
    /// The change of events delivered, or ingested.
    pub(crate) success: Change,
    /// The change of events not sent due to an error.
    pub(crate) errors: Change,
    /// The change of events filtered.
    pub(crate) filtered: Change,
}

/// Whether the totals that the service reports are the sums of its counts.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum ReconciliationDocument {
    /// Each total is the sum of its counts.
    Balanced,
    /// At least one total differs. The differences are the reported totals minus the sums.
    Unbalanced(ChangesOf),
    /// The counts were filtered, and can't be compared with the totals of all events.
    Unavailable,
}

/// A cluster without any result.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MissingDocument<'a> {
    /// The cluster's name.
    pub(crate) cluster: &'a str,
    #[serde(flatten)]
    pub(crate) failure: FailureDocument<'a>,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FailureDocument<'a> {
    /// The code of the error, such as `token_refused`; `null` for errors of the command itself, such as an unreadable file.
    pub(crate) code: Option<&'static str>,
    /// A sentence for people.
    pub(crate) message: &'a str,
}

/// A number of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) u64);

/// The change of a number of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change(pub(crate) i128);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 <= LARGEST {
            true => serializer.serialize_u64(self.0),
            false => serializer.collect_str(&self.0),
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.0) {
            Ok(change) if change.unsigned_abs() <= LARGEST => serializer.serialize_i64(change),
            _ => serializer.collect_str(&self.0),
        }
    }
}

impl JsonSchema for Count {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of events: a number up to 2^53 - 1, and a string of digits above",
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LARGEST},
                {"type": "string", "pattern": "^[1-9][0-9]{15,19}$"},
            ],
        })
    }
}

impl JsonSchema for Change {
    fn schema_name() -> Cow<'static, str> {
        "Change".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let largest = LARGEST as i64;
        json_schema!({
            "description": "The change of a number of events: a number from -(2^53 - 1) to 2^53 - 1, and digits as a string beyond",
            "anyOf": [
                {"type": "integer", "minimum": -largest, "maximum": largest},
                {"type": "string", "pattern": "^-?[1-9][0-9]{15,}$"},
            ],
        })
    }
}

/// Names and values, which become the members of a JSON object in this order.
pub(crate) struct Pairs<'a>(pub(crate) Vec<(&'a str, &'a str)>);

impl<'a> Pairs<'a> {
    /// Returns the labels of a cluster as members.
    pub(crate) fn of(labels: &'a [(String, String)]) -> Self {
        let labels = labels.iter();
        Self(labels.map(|(name, value)| (&**name, &**value)).collect())
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl JsonSchema for Pairs<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": {"type": "string"}})
    }
}

/// Rows that are created while they are written, so that only one row is in memory at a time.
pub(crate) struct Rows<'a, R> {
    /// The positions of the rows.
    pub(crate) positions: Vec<usize>,
    /// Makes the row at a position.
    pub(crate) row: Box<dyn Fn(usize) -> Option<R> + 'a>,
}

impl<R: Serialize> Serialize for Rows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.positions.iter().filter_map(|position| (self.row)(*position)))
    }
}

impl<R: JsonSchema> JsonSchema for Rows<'_, R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<R>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<R>::json_schema(generator)
    }
}
