//! The formats: each is a file of its own, and one line in the list of this one.

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

/// Hands the list of all formats to a macro: each with its meaning, its name, and its file.
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

macro_rules! declare {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A format that counts are written in.
            #[non_exhaustive]
            pub enum Format { $( $(#[$doc])* $Format = $name ),+ }
        }
    };
}
each_format!(declare);

macro_rules! find {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        impl Format {
            /// What is known of the format.
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

    /// The headers that a message is sent with, `content-type` first. What names the sender (`user-agent`) or proves who
    /// it is comes from the caller.
    pub fn headers(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let media_type = ("content-type", self.media_type());
        let others = self
            .form()
            .delivery
            .iter()
            .flat_map(|delivery| delivery.headers);
        std::iter::once(media_type).chain(others.copied())
    }

    /// How it is sent, for [`PushOptions::check`](crate::PushOptions::check).
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

    /// Whether it can be sent with [`Push`](crate::Push). The others are for files and scrapes.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        self.form().delivery.is_some()
    }

    /// Whether it is a table of rows in a file that is written anew each time, with all windows: not samples of a system
    /// that keeps them.
    #[must_use]
    pub const fn is_file(self) -> bool {
        let form = self.form();
        matches!(form.windows, Windows::All) && form.delivery.is_none()
    }

    /// Whether each piece of an export is a message of its own, which is sent by itself. Otherwise all pieces together
    /// are one text.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        self.form().is_messages
    }
}
