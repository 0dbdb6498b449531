//! Flags that say how results are written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tallyfold::CountName;
use tallyfold_export::ExportOptions;

use crate::arguments::declared::{Declared, Flags};

/// How results are written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShowFlags {
    /// The format [default: table]
    ///
    /// In csv, ndjson and parquet, a group has one row for the whole time (with --by-window, one for each window), in the
    /// order of --order. Formats of other systems have their own order, and get only counts that no longer change (--windows).
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, hide_default_value = true)]
    pub(crate) format: OutputFormat,
    /// Only so many rows: those that rank highest by --order (by default errors)
    ///
    /// The rows of all clusters are ranked together. With --by-window, a group is ranked by its sum and keeps all of its
    /// windows. Totals are those of all rows.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Orders rows by this count, highest first; comparisons by its change
    #[arg(long, value_enum, value_name = "COUNT")]
    pub(crate) order: Option<OrderFlag>,
    /// Writes into this file, which is replaced only when all is written, in place of stdout (-)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A label for exported counts, such as env=production; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", hide_short_help = true)]
    pub(crate) labels: Vec<String>,
    /// The options of exports.
    #[command(flatten)]
    pub(crate) export: Declared<ExportFlags>,
}

impl ShowFlags {
    /// Whether only windows are written whose counts no longer change, because another system keeps what it gets.
    pub(crate) fn writes_settled_only(&self) -> bool {
        let is_kept = match self.format {
            OutputFormat::Openmetrics
            | OutputFormat::OtlpJson
            | OutputFormat::Influx
            | OutputFormat::Dogstatsd => true,
            OutputFormat::Table
            | OutputFormat::Json
            | OutputFormat::Ndjson
            | OutputFormat::Csv
            | OutputFormat::Parquet => false,
        };
        is_kept && self.export.given.get("windows").is_none()
    }
}

/// The formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns at a terminal; into a file or a pipe a line for each row, with tabs between the cluster (if
    /// clusters have names), the dimensions, start and end (with --by-window), success, errors and filtered.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema). Counts are numbers; above 2^53 - 1, where many readers
    /// would round them, they are strings.
    Json,
    /// One JSON object for each row. Counts are strings of digits.
    Ndjson,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// OpenMetrics text, for Prometheus.
    Openmetrics,
    /// The OpenTelemetry protocol as JSON, one request for each line.
    OtlpJson,
    /// InfluxDB's line protocol.
    Influx,
    /// DogStatsD datagrams, one for each line.
    Dogstatsd,
}

/// A count to rank by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderFlag {
    /// Events that were not sent due to an error.
    Errors,
    /// Events that were delivered.
    Success,
    /// Events that were filtered.
    Filtered,
}

impl From<OrderFlag> for CountName {
    fn from(flag: OrderFlag) -> Self {
        match flag {
            OrderFlag::Errors => Self::Errors,
            OrderFlag::Success => Self::Success,
            OrderFlag::Filtered => Self::Filtered,
        }
    }
}

/// The options of exports that are flags.
#[derive(Clone, Debug)]
pub(crate) struct ExportFlags;

impl Flags for ExportFlags {
    type Options = ExportOptions;

    const NAMES: &'static [&'static str] = &["name", "windows", "exact"];
    const HEADING: &'static str = "Output";
}
