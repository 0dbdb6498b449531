//! One file per format. The list of all of them is in [`format`](crate::format).

pub(crate) mod csv;
pub(crate) mod datadog;
pub(crate) mod dogstatsd;
pub(crate) mod influx;
pub(crate) mod ndjson;
pub(crate) mod openmetrics;
pub(crate) mod statsd;
