//! Which counts are asked for, and which of them are kept.

use clap::{Args, ValueEnum};
use tallyfold::text;
use tallyfold::{CollectOptions, Dimension, Metric};

use super::declared::Flags;
use crate::failure::{Failure, Result};

/// Flags for a query's dimensions.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Query")]
pub(crate) struct QueryFlags {
    /// The dimensions to count by, in this order: write_key, event_name, integration, reason
    ///
    /// Reasons are known for event delivery only.
    #[arg(long, value_name = "A,B", default_value = "integration")]
    pub(crate) by: String,
    /// Keeps only counts with this value; may be repeated
    ///
    /// Values of one dimension add up, different dimensions restrict each other. An empty value keeps counts that have none.
    #[arg(long = "where", value_name = "DIMENSION=VALUE")]
    pub(crate) only: Vec<String>,
}

/// A checked query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The dimensions that the counts are shown by.
    pub(crate) by: Vec<String>,
    /// The dimensions that the service is asked for: those, and the ones that are filtered by.
    pub(crate) asked: Vec<String>,
    /// The values that are kept, by dimension.
    pub(crate) only: Vec<(String, Vec<String>)>,
}

impl QueryFlags {
    /// Checks the dimensions.
    ///
    /// # Errors
    /// For a condition that is none. (Unknown dimensions are found by the core.)
    pub(crate) fn query(&self) -> Result<Query> {
        let by = text::list(&self.by);
        let mut only: Vec<(String, Vec<String>)> = Vec::new();
        for condition in &self.only {
            let (name, value) = condition_of(condition)?;
            match only.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => values.push(value),
                None => only.push((name, vec![value])),
            }
        }
        let mut asked = by.clone();
        for (name, _) in &only {
            if !asked.contains(name) {
                asked.push(name.clone());
            }
        }
        Ok(Query { by, asked, only })
    }
}

fn condition_of(text: &str) -> Result<(String, String)> {
    let names: Vec<&str> = Dimension::ALL
        .iter()
        .map(|dimension| dimension.as_str())
        .collect();
    let wanted = || {
        let names = names.join(", ");
        Failure::usage(format!(
            "--where {text}: want DIMENSION=VALUE with one of {names}, such as integration=warehouse"
        ))
    };
    let (name, value) = text.split_once('=').ok_or_else(wanted)?;
    let name = name.trim();
    match names.contains(&name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(wanted()),
    }
}

/// Which endpoint is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricFlag {
    /// Events sent to integrations.
    Delivery,
    /// Events received.
    Ingestion,
}

impl From<MetricFlag> for Metric {
    fn from(flag: MetricFlag) -> Self {
        match flag {
            MetricFlag::Delivery => Self::EventDelivery,
            MetricFlag::Ingestion => Self::EventIngestion,
        }
    }
}

/// What can be said of how a range is read.
const READING: &[&str] = &[
    "window",
    "concurrency",
    "finest",
    "settle_ms",
    "memory_limit",
    "probe",
    "patience_ms",
    "deadline_ms",
];

/// How a long range is read, for which somebody waits all night.
#[derive(Clone, Debug)]
pub(crate) struct Reading;

impl Flags for Reading {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = READING;
    const HEADING: &'static str = "Reading";
}

/// How a range is read while somebody waits for the answer: a service that is down is not waited for.
#[derive(Clone, Debug)]
pub(crate) struct ReadingNow;

impl Flags for ReadingNow {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = READING;
    const USUAL: &'static [(&'static str, &'static str)] = &[("patience_ms", "0s")];
    const HEADING: &'static str = "Reading";
}

/// What only a collect with a checkpoint has.
#[derive(Clone, Debug)]
pub(crate) struct Sharing;

impl Flags for Sharing {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = &["keep", "part", "drop_old"];
    const HEADING: &'static str = "Checkpoint";
    const IS_COMMON: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_add_to_what_is_asked() {
        let flags = QueryFlags {
            by: "reason, integration".to_owned(),
            only: ["write_key=a=b", "integration=", "write_key=c"]
                .map(str::to_owned)
                .into(),
        };
        let query = flags.query().unwrap();
        assert_eq!(query.by, ["reason", "integration"]);
        assert_eq!(query.asked, ["reason", "integration", "write_key"]);
        let only = |name: &str, values: &[&str]| {
            (
                name.to_owned(),
                values.iter().map(|value| (*value).to_owned()).collect(),
            )
        };
        assert_eq!(
            query.only,
            [only("write_key", &["a=b", "c"]), only("integration", &[""])]
        );
    }

    #[test]
    fn a_condition_without_a_dimension_is_refused() {
        for condition in ["warehouse", "=x", "cluster=eu", "Integration=x"] {
            let flags = QueryFlags {
                by: "integration".to_owned(),
                only: vec![condition.to_owned()],
            };
            assert!(flags.query().unwrap_err().text.contains(condition));
        }
    }
}
