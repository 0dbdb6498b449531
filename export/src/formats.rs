//! The formats. Each has its own file, and one line in the list in this file.

pub(crate) mod csv;
pub(crate) mod datadog;
pub(crate) mod dogstatsd;
pub(crate) mod influx;
pub(crate) mod ndjson;
pub(crate) mod openmetrics;
pub(crate) mod otlp;
pub(crate) mod otlp_json;
pub(crate) mod protobuf;
pub(crate) mod remote_write;
pub(crate) mod remote_write_2;
pub(crate) mod statsd;

use tallyfold::Result;
use tallyfold::sending::Delivery;

use crate::form::{Form, Windows};

/// Passes the list of all formats to a macro: each with its documentation, its name and its file.
macro_rules! each_format {
    ($to:ident) => {
        $to! {
            /// OpenMetrics text 1.0, for a scrape or for `promtool tsdb create-blocks-from openmetrics`.
            OpenMetrics = "openmetrics" in openmetrics,
            /// Prometheus remote-write 1.0: protobuf messages, compressed with snappy.
            RemoteWrite = "remote-write" in remote_write,
            /// Prometheus remote-write 2.0: like 1.0, but a message contains each text only once, and it describes each metric.
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
            /// Comma-separated values (RFC 4180).
            Csv = "csv" in csv,
            /// A JSON object on each line.
            Ndjson = "ndjson" in ndjson,
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A format in which counts are written.
            #[non_exhaustive]
            pub enum Format { $( $(#[$doc])* $Format = $name ),+ }
        }
    };
}
each_format!(declare);

macro_rules! find {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        impl Format {
            /// The definition of the format.
            pub(crate) const fn form(self) -> &'static Form {
                match self { $( Self::$Format => &$file::FORM ),+ }
            }
        }
    };
}
each_format!(find);

impl Format {
    /// The media type of what is written, for `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        self.form().media_type
    }

    /// The headers of each message, `content-type` first. The caller adds the headers that identify the sender
    /// (`user-agent`) or authenticate it.
    pub fn headers(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let media_type = ("content-type", self.media_type());
        let others = self.form().delivery.iter().flat_map(|delivery| delivery.headers);
        std::iter::once(media_type).chain(others.copied())
    }

    /// How messages in this format are sent, for [`PushOptions::check`](crate::PushOptions::check).
    ///
    /// # Errors
    /// `invalid_argument` for a format that is not sent.
    pub fn delivery(self) -> Result<&'static Delivery> {
        self.form().delivery()
    }

    /// How the running totals of a ledger are sent, for [`PushOptions::check`](crate::PushOptions::check).
    ///
    /// # Errors
    /// `unsupported_by_format` for a format that has no running totals.
    pub fn totals_delivery(self) -> Result<&'static Delivery> {
        self.form().totals()
    }

    /// Whether [`Push`](crate::Push) can send the format. The other formats are for files and scrapes.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        self.form().delivery.is_some()
    }

    /// Whether the format is a table of rows in a file, which is rewritten each time with all windows. Other formats
    /// contain samples for another system.
    #[must_use]
    pub const fn is_file(self) -> bool {
        let form = self.form();
        matches!(form.windows, Windows::All) && form.delivery.is_none()
    }

    /// Whether each piece of an export is a separate message. Otherwise, all pieces together are one text.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        self.form().is_messages
    }
}
