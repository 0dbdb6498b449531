//! The list of all formats.

/// Hands the list of all formats to a macro: each with its meaning, its name, and the file in `formats/` that has it.
macro_rules! each_format {
    ($to:ident) => {
        $to! {
            /// OpenMetrics text 1.0, for a scrape or for `promtool tsdb create-blocks-from openmetrics`.
            OpenMetrics = "openmetrics" in openmetrics,
            /// Prometheus remote-write 1.0: messages of protobuf, compressed with snappy.
            RemoteWrite = "remote-write" in remote_write,
            /// The message of Prometheus remote-write 2.0, which has each text once, and says what each metric is.
            RemoteWrite2 = "remote-write-2" in remote_write_2,
            /// Requests of the OpenTelemetry protocol (OTLP), as protobuf.
            Otlp = "otlp" in otlp,
            /// Requests of the OpenTelemetry protocol (OTLP), as JSON.
            OtlpJson = "otlp-json" in otlp_json,
            /// InfluxDB's line protocol.
            Influx = "influx" in influx,
            /// DogStatsD datagrams, protocol 1.3, with timestamps.
            DogStatsD = "dogstatsd" in dogstatsd,
            /// Plain StatsD datagrams, for windows that just ended.
            StatsD = "statsd" in statsd,
            /// The JSON of Datadog's API for metrics, version 2.
            Datadog = "datadog" in datadog,
            /// Comma-separated values, as RFC 4180 says.
            Csv = "csv" in csv,
            /// A JSON object on each line.
            Ndjson = "ndjson" in ndjson,
        }
    };
}
pub(crate) use each_format;

macro_rules! declare {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A format that counts are written in.
            pub enum Format { $( $(#[$doc])* $Format = $name ),+ }
        }
    };
}
each_format!(declare);
