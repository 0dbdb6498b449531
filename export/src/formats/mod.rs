//! One file per format, and what several of them use. The list of all formats is in [`format`](crate::format).

pub(crate) mod csv;
pub(crate) mod datadog;
pub(crate) mod dogstatsd;
pub(crate) mod influx;
pub(crate) mod ndjson;
pub(crate) mod openmetrics;
pub(crate) mod otlp;
pub(crate) mod otlp_json;
pub(crate) mod otlp_metrics;
pub(crate) mod protobuf;
pub(crate) mod remote_write;
pub(crate) mod remote_write_2;
pub(crate) mod remote_write_series;
pub(crate) mod statsd;
