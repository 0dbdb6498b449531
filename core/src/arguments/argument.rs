//! One argument: its name, what kind of value it has, and the types that are made from values.

use std::slice;
use std::vec;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
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

/// What a manual shows about an argument.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// The lines of its description. The first paragraph, up to an empty line, is the summary. A text in backticks is a
    /// value, or the name of another argument as Rust spells it.
    pub lines: &'static [&'static str],
    /// The type in Rust.
    pub rust: &'static str,
    /// Returns the closed list of allowed texts; empty if other texts may be valid.
    pub choices: fn() -> Vec<&'static str>,
    /// Returns the default, or `None` if there is no value to show, such as for an argument that may be absent. A required
    /// argument has no such function.
    pub default: Option<fn() -> Option<Value>>,
}

/// The unit of a time, which some hosts write as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl Surface {
    /// The paragraphs of the description. The first one is the summary. `known` are arguments whose names are spelled
    /// as callers of that host write them.
    pub fn paragraphs(&self, known: &[Argument], spelling: Spelling) -> Vec<String> {
        let paragraphs = self.lines.split(|line| line.trim().is_empty());
        let paragraphs = paragraphs.filter(|lines| !lines.is_empty());
        let joined = paragraphs.map(|lines| {
            let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
            spelled(&lines.join(" "), known, spelling)
        });
        joined.collect()
    }
}

/// A text whose names of arguments, in backticks, are spelled for a host.
fn spelled(text: &str, known: &[Argument], spelling: Spelling) -> String {
    let pieces = text.split('`').enumerate().map(|(place, piece)| {
        let argument = known.iter().find(|argument| argument.name == piece);
        match argument {
            Some(argument) if place % 2 == 1 => argument.spelled(spelling),
            None if place % 2 == 1 => format!("`{piece}`"),
            _ => piece.to_owned(),
        }
    });
    pieces.collect()
}

impl Argument {
    /// The name as callers of that host write it.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> String {
        Name::from(self.name).spelled(spelling).into_owned()
    }

    /// The unit, if it is a time.
    #[must_use]
    pub fn unit(&self) -> Option<Unit> {
        match self.name {
            name if name.ends_with("_ms") => Some(Unit::Milliseconds),
            name if name.ends_with("_s") => Some(Unit::Seconds),
            _ => None,
        }
    }

    /// The environment variable that may hold it, for an argument of a client: texts, addresses and secrets have one.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let is_text = matches!(self.kind, Kind::Text | Kind::Address | Kind::Secret);
        is_text.then(|| format!("TALLYFOLD_{}", self.name.to_ascii_uppercase()))
    }
}

/// The kind of value that an argument has. It determines how a host reads the value. Each host matches all kinds, because
/// it describes valid values in its own words. So a new kind breaks the build of each host until the host reads it.
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
    /// A timestamp: ISO 8601 text, or the host's own type for it.
    Instant,
    /// A window `[start, end)` of two timestamps.
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

/// The type of an argument.
pub trait Parameter: Sized {
    /// The kind of value that it is made from.
    const KIND: Kind;

    /// Parses a value.
    ///
    /// # Errors
    /// For an invalid value. The reader adds the argument's name, except to errors of a
    /// [`Kind::Nested`], which already name the inner argument, and of a [`Kind::Window`], which name `start` or `end`.
    fn from_value(value: Value) -> Result<Self>;

    /// The value from which [`Parameter::from_value`] would make it, for a manual; `None` if there is nothing to show.
    fn to_value(&self) -> Option<Value> {
        None
    }

    /// The closed list of texts that [`Parameter::from_value`] accepts; empty if other texts may be valid.
    fn choices() -> Vec<&'static str> {
        Vec::new()
    }
}

/// A value, read as a [`Kind`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Of [`Kind::Text`], [`Kind::Address`], [`Kind::Instant`] and [`Kind::Step`].
    Text(String),
    /// Of [`Kind::Texts`], both edges of a [`Kind::Window`], and names and texts of a [`Kind::Mapping`] in turn.
    Texts(Vec<String>),
    /// Of [`Kind::Secret`].
    Secret(Secret),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Whole`], [`Kind::Milliseconds`] and [`Kind::Patience`]. Numbers outside of `i128`
    /// become its least or greatest value.
    Whole(i128),
    /// Of [`Kind::Patience`], without a limit.
    Endless,
    /// Of [`Kind::Pair`].
    Pair([i128; 2]),
    /// Of [`Kind::Nested`].
    Nested(Values),
}

/// The values of arguments, in the order in which the arguments are declared.
#[derive(Clone, Debug)]
pub struct Values {
    arguments: slice::Iter<'static, Argument>,
    values: vec::IntoIter<Option<Value>>,
    /// The first error of [`Values::set`].
    error: Option<Error>,
}

impl Values {
    pub(super) fn new(arguments: &'static [Argument], values: Vec<Option<Value>>) -> Self {
        Self { arguments: arguments.iter(), values: values.into_iter(), error: None }
    }

    fn next(&mut self) -> (&'static str, Option<Value>) {
        let name = self.arguments.next().map_or("", |argument| argument.name);
        (name, self.values.next().flatten())
    }

    /// Skips the next argument.
    pub fn skip(&mut self) {
        self.next();
    }

    /// Replaces the default of the next argument, if a value was given. [`Values::check`] returns the first error.
    pub fn set<T: Parameter>(&mut self, place: &mut T) {
        if let (name, Some(value)) = self.next() {
            match made(name, value) {
                Ok(made) => *place = made,
                Err(error) => _ = self.error.get_or_insert(error),
            }
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The first error of [`Values::set`], with the name of the argument.
    pub fn check(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// The next argument, which must have been given.
    ///
    /// # Errors
    /// With the name of the argument.
    pub fn required<T: Parameter>(&mut self) -> Result<T> {
        match self.next() {
            (name, None) => Err(Error::argument(name, Code::MissingArgument, "required")),
            (name, Some(value)) => made(name, value),
        }
    }
}

/// Parses a value for the argument with that name.
fn made<T: Parameter>(name: &'static str, value: Value) -> Result<T> {
    T::from_value(value).map_err(|error| match T::KIND {
        Kind::Nested(_) | Kind::Window => error,
        _ => error.with_argument(name),
    })
}
