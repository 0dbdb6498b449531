//! Which counts rules need.

use serde::{Serialize, Serializer};
use tallyfold::{Dimension, Metric, TimeStep};

use super::rule::{Rule, Test};

/// The counts of one endpoint that rules need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Need {
    /// The endpoint.
    pub metric: Metric,
    /// The dimensions that all rules together need.
    pub dimensions: Vec<Dimension>,
    /// The length of the windows, such as `15m`: a divisor of those of all rules.
    #[serde(rename = "window", serialize_with = "as_step")]
    #[cfg_attr(feature = "surface", schemars(with = "String", extend("format" = "step")))]
    pub window_s: u64,
    /// How long before now the first window starts.
    #[serde(rename = "backMs", serialize_with = "as_ms")]
    #[cfg_attr(feature = "surface", schemars(with = "f64"))]
    pub back_s: u64,
}

/// The step as queries write it: `15m`.
fn as_step<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match TimeStep::from_seconds(*seconds) {
        Ok(step) => serializer.collect_str(&step),
        Err(_) => serializer.collect_str(&format_args!("{seconds}s")),
    }
}

/// In milliseconds, which are below 2^53.
fn as_ms<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*seconds as f64 * 1000.0)
}

/// The counts that rules need of each endpoint, in the order of the endpoints.
pub(crate) fn needs(rules: &[Rule], explained_by: &[Dimension]) -> Vec<Need> {
    let needs = Metric::ALL.iter().map(|metric| {
        let uses = |rule: &&Rule| rule.metric == *metric || matches!(rule.test, Test::Undelivered);
        let rules: Vec<&Rule> = rules.iter().filter(uses).collect();
        let named = |dimension: Dimension| {
            explained_by.contains(&dimension)
                || rules.iter().any(|rule| {
                    let only = rule.only.iter().map(|(only, _)| only);
                    rule.by.iter().chain(only).any(|own| *own == dimension)
                })
        };
        let windows = rules.iter().map(|rule| rule.window);
        let window = windows.reduce(common).map(|window| window.seconds());
        window.map(|window| Need {
            metric: *metric,
            dimensions: Dimension::ALL
                .iter()
                .copied()
                .filter(|dimension| metric.has(*dimension) && named(*dimension))
                .collect(),
            window_s: window.into(),
            back_s: rules
                .iter()
                .map(|rule| rule.back())
                .max()
                .unwrap_or_default(),
        })
    });
    needs.flatten().collect()
}

/// The longest step of which both steps are multiples.
fn common(one: TimeStep, other: TimeStep) -> TimeStep {
    let (mut a, mut b) = (one.seconds(), other.seconds());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    // A divisor of what divides a day divides it too.
    TimeStep::from_seconds(a.into()).unwrap_or(one)
}
