//! What is known of each format, by its name.

use tallyfold::Result;
use tallyfold::sending::Delivery;

use crate::form::Form;
use crate::format::{Format, each_format};
use crate::formats;

macro_rules! find {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        impl Format {
            /// What is known of the format.
            pub(crate) const fn form(self) -> &'static Form {
                match self { $( Self::$Format => &formats::$file::FORM ),+ }
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

    /// Whether it can be sent with [`Push`](crate::Push). The others are for files and scrapes.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        self.form().delivery.is_some()
    }

    /// Whether each piece of an export is a message of its own, which is sent by itself. Otherwise all pieces together
    /// are one text.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        self.form().is_messages
    }
}
