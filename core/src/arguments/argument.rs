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

/// What kind of value an argument has, which tells a host how to read it. Each host has its own words for what a value
/// must be.
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
    /// A length of time, in milliseconds.
    Milliseconds,
    /// A length of time, as in [`Kind::Milliseconds`], or no limit.
    Patience,
    /// Texts by names, such as the headers of a request. No message may quote a text.
    Mapping,
    /// More arguments, by their names.
    Nested(&'static [Argument]),
    /// Something that the host passes without the core's reader: a function, a table, a random
    /// number.
    Host,
}
