//! The values of arguments, and the types that are made from them.

use std::slice;
use std::vec;

use super::argument::{Argument, Kind};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;

/// The type of an argument.
pub trait Parameter: Sized {
    /// The kind of value that it is made from.
    const KIND: Kind;

    /// Parses a value.
    ///
    /// # Errors
    /// For an invalid value. The reader adds the argument's name, except to errors of a
    /// [`Kind::Nested`], which already name the inner argument.
    fn from_value(value: Value) -> Result<Self>;
}

/// A value, read as a [`Kind`].
#[derive(Clone, Debug)]
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

/// The values of arguments, in the order of declaration in which options are made from them.
#[derive(Clone, Debug)]
pub struct Values {
    arguments: slice::Iter<'static, Argument>,
    values: vec::IntoIter<Option<Value>>,
    /// The first error of [`Values::set`].
    error: Option<Error>,
}

impl Values {
    pub(super) fn new(arguments: &'static [Argument], values: Vec<Option<Value>>) -> Self {
        Self {
            arguments: arguments.iter(),
            values: values.into_iter(),
            error: None,
        }
    }

    fn next(&mut self) -> (&'static str, Option<Value>) {
        let name = self.arguments.next().map_or("", |argument| argument.name);
        (name, self.values.next().flatten())
    }

    /// Skips the next argument.
    pub fn skip(&mut self) {
        self.next();
    }

    /// Puts the next argument in place of its default, if it was given. [`Values::check`] returns the first error.
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
        Kind::Nested(_) => error,
        _ => error.with_argument(name),
    })
}
