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
