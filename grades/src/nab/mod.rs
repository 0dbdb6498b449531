//! Single streams: labelled windows of the count series of the Numenta Anomaly Benchmark.
pub(crate) mod report;
mod score;
mod series;
