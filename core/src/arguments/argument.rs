//! One argument: its name, and what kind of value it has.

use crate::spelling::{Name, Spelling};

/// One argument of a function.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The name as Rust spells it.
    pub name: &'static str,
    /// What kind of value it has.
    pub kind: Kind,
    /// The data for type declarations and manuals; only with the feature `surface`.
    pub surface: Option<&'static Surface>,
}

/// What a manual says about an argument.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// The doc comment, which names other arguments as Rust spells them.
    pub doc: &'static str,
    /// The type in Rust.
    pub rust: &'static str,
    /// Prints the default; `None` for an argument that is required or may be absent.
    pub default: Option<fn() -> String>,
}

impl Argument {
    /// The name as callers of that host write it.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> String {
        Name::from(self.name).spelled(spelling).into_owned()
    }

    /// The environment variable that may hold it, for an argument of a client: texts, addresses and secrets have one.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let is_text = matches!(self.kind, Kind::Text | Kind::Address | Kind::Secret);
        is_text.then(|| format!("TALLYFOLD_{}", self.name.to_ascii_uppercase()))
    }
}

/// What kind of value an argument has, which tells a host how to read it.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// Any number of texts.
    Texts,
    /// Text that no message may quote.
    Secret,
    /// The address of a service: text, or the host's own type for it.
    Address,
    /// An instant: ISO 8601 text, or the host's own type for it.
    Instant,
    /// A window `[start, end)` of two instants.
    Window,
    /// A step of the UTC day: text, or the host's own type for a length of time.
    Step,
    /// True or false.
    Flag,
    /// A whole number.
    Whole,
    /// Two whole numbers.
    Pair,
    /// A length of time: seconds in Python, milliseconds elsewhere.
    Milliseconds,
    /// A length of time, as in [`Kind::Milliseconds`], or no limit: `None` in Python, `Infinity` in
    /// JavaScript.
    Patience,
    /// Texts by names, such as the headers of a request. No message may quote a text.
    Mapping,
    /// More arguments, by their names.
    Nested(&'static [Argument]),
    /// Something that the host passes without the core's reader: a function, a table, a random
    /// number.
    Host,
}

impl Kind {
    /// Says what a value must be, in the words of that host.
    #[must_use]
    pub fn wanted(self, spelling: Spelling) -> &'static str {
        let (python, others) = match self {
            Self::Text => ("want a str", "want a string"),
            Self::Texts => ("want a sequence of str", "want an array of strings"),
            Self::Secret => ("want a str of Unicode text", "want a string"),
            Self::Address => ("want a str", "want a string or a URL"),
            Self::Instant => (
                "want a datetime or a str",
                "want a Date, a Temporal.Instant or ZonedDateTime, or ISO 8601 text",
            ),
            Self::Window => ("want a pair (start, end)", "want { start, end }"),
            Self::Step => ("want a str or a timedelta", "want a string such as \"15m\""),
            Self::Flag => ("want True or False", "want true or false"),
            Self::Whole => ("want an int", "want a whole number"),
            Self::Pair => ("want a pair of ints", "want an array of two whole numbers"),
            Self::Milliseconds => ("want a number of seconds, 0 or more", "want a whole number"),
            Self::Patience => (
                "want a number of seconds, or None",
                "want milliseconds, or Infinity",
            ),
            Self::Mapping => (
                "want a dict of str to str",
                "want an object of strings by their names",
            ),
            Self::Nested(_) => ("want Limits", "want an object"),
            Self::Host => ("want another value", "want another value"),
        };
        match spelling {
            Spelling::Python => python,
            Spelling::Rust | Spelling::JavaScript => others,
            Spelling::Flag | Spelling::Toml => self.wanted_as_text(spelling == Spelling::Toml),
        }
    }

    /// Says what a value must be on a command line or in a TOML file, where times are written with a unit.
    fn wanted_as_text(self, is_toml: bool) -> &'static str {
        match (self, is_toml) {
            (Self::Text | Self::Secret, _) => "want text",
            (Self::Texts, true) => "want an array of texts",
            (Self::Texts, false) => "want texts separated by commas",
            (Self::Address, _) => "want an address such as https://cluster.example",
            (Self::Instant, _) => "want an instant such as 2026-01-31T09:00:00Z",
            (Self::Window, _) => "want two instants",
            (Self::Step, _) => "want a step such as 15m, 1h or 1d",
            (Self::Flag, _) => "want true or false",
            (Self::Whole, _) => "want a whole number",
            (Self::Pair, true) => "want two whole numbers such as [0, 4]",
            (Self::Pair, false) => "want two whole numbers such as 0/4",
            (Self::Milliseconds, _) => "want a length of time such as 500ms, 30s, 15m or 2h",
            (Self::Patience, _) => "want a length of time such as 30s or 15m, or none",
            (Self::Mapping, _) => "want texts by names",
            (Self::Nested(_), _) => "want a table of settings",
            (Self::Host, _) => "want another value",
        }
    }
}
