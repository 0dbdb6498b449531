//! One file per format, and what several of them use.

pub(crate) mod json;
pub(crate) mod openmetrics;
pub(crate) mod otlp;
pub(crate) mod otlp_json;
pub(crate) mod otlp_metrics;
pub(crate) mod protobuf;
pub(crate) mod remote_write;
pub(crate) mod remote_write_2;
pub(crate) mod remote_write_series;
