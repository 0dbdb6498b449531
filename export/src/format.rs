//! The list of all formats.

use crate::form::Form;
use crate::formats;

macro_rules! formats {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A format that counts are written in.
            pub enum Format { $( $(#[$doc])* $Format = $name ),+ }
        }

        impl Format {
            pub(crate) const fn form(self) -> &'static Form {
                match self { $( Self::$Format => &formats::$file::FORM ),+ }
            }
        }
    };
}

formats! {
    /// OpenMetrics text 1.0, for a scrape or for `promtool tsdb create-blocks-from openmetrics`.
    OpenMetrics = "openmetrics" in openmetrics,
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

impl Format {
    /// The media type of what is written, for `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        self.form().media_type
    }

    /// Whether each piece of an export is a message of its own, which is sent by itself. Otherwise all pieces together
    /// are one text.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        self.form().is_messages
    }
}
