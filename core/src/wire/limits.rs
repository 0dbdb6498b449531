//! How much of a response is read before it is refused.

use crate::arguments::{self, Argument, Arguments, Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};

crate::options! {
    /// How much of a response is read before it is refused. Each limit has an error code of its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Limits: Default {
        /// How deeply objects and arrays may be nested (`depth_limit`).
        depth: usize = 32,
        /// The bytes of one string once its escapes are resolved (`string_limit`).
        string_bytes: usize = 64 * 1024,
        /// The keys of one object (`key_limit`).
        keys: usize = 1_000,
        /// The bytes of one body (`body_limit`).
        body_bytes: u64 = 4 * 1024 * 1024 * 1024,
        /// The groups of one table (`group_limit`).
        groups: usize = 4_000_000,
    }
}

/// The limits of an argument, each under its own name.
impl Parameter for Limits {
    const KIND: Kind = Kind::Nested;

    fn from_value(_: Value) -> Result<Self> {
        Err(Error::new(
            Code::InvalidArgument,
            "want limits by their names",
        ))
    }

    fn take<A: Arguments>(from: &A, argument: &Argument) -> Result<Option<Self>, A::Error> {
        let nested = from.nested(&argument.spelled(A::SPELLING))?;
        nested
            .map(|nested| arguments::read(&nested, &[]))
            .transpose()
    }
}
