//! The interface through which the core reads what a host's caller wrote.

use super::argument::{Kind, Value};
use crate::error::Error;
use crate::spelling::Spelling;

/// Arguments by name, as a host's caller wrote them: a Python mapping, a JavaScript object.
pub trait Arguments: Sized {
    /// The error of reading: the host's own, or the core's.
    type Error: From<Error>;

    /// How the host spells names.
    const SPELLING: Spelling;

    /// The value under a name, read as that kind; `None` if there is none.
    ///
    /// # Errors
    /// For a value of another type: the error names the argument, and the expected type in the words of the host.
    fn value(&self, name: &str, kind: Kind) -> Result<Option<Value>, Self::Error>;

    /// The arguments under a name; `None` if there are none.
    ///
    /// # Errors
    /// For a value that has no arguments.
    fn nested(&self, name: &str) -> Result<Option<Self>, Self::Error>;

    /// The names of all arguments that were given.
    ///
    /// # Errors
    /// The host's own.
    fn names(&self) -> Result<Vec<String>, Self::Error>;
}
