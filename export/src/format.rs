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
    /// Prometheus remote-write 1.0: messages of protobuf, compressed with snappy.
    RemoteWrite = "remote-write" in remote_write,
    /// The message of Prometheus remote-write 2.0, which has each text once, and says what each metric is.
    RemoteWrite2 = "remote-write-2" in remote_write_2,
    /// Requests of the OpenTelemetry protocol (OTLP), as protobuf.
    Otlp = "otlp" in otlp,
    /// Requests of the OpenTelemetry protocol (OTLP), as JSON.
    OtlpJson = "otlp-json" in otlp_json,
}

impl Format {
    /// The media type of what is written, for `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        self.form().media_type
    }

    /// The headers that a message is sent with, `Content-Type` first. What names the sender (`User-Agent`) or proves who
    /// it is, comes from the caller.
    pub fn headers(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let media_type = ("Content-Type", self.media_type());
        std::iter::once(media_type).chain(self.form().headers.iter().copied())
    }

    /// Whether each piece of an export is a message of its own, which is sent by itself. Otherwise all pieces together
    /// are one text.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        self.form().is_messages
    }
}
