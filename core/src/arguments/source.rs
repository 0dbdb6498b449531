//! What a host's caller wrote, as the core reads it.

use super::argument::Kind;
use crate::error::Error;
use crate::secret::Secret;
use crate::spelling::Spelling;

/// Arguments by name, as a host's caller wrote them: a Python mapping, a JavaScript object.
pub trait Arguments: Sized {
    /// What reading fails with: the host's own errors, and the core's.
    type Error: From<Error>;

    /// How the host spells names.
    const SPELLING: Spelling;

    /// The value under a name, read as that kind; `None` if there is none.
    ///
    /// # Errors
    /// For a value of another type, which names the argument and says [`Kind::wanted`].
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

/// A value, read as a [`Kind`].
#[derive(Clone, Debug)]
pub enum Value {
    /// Of [`Kind::Text`], [`Kind::Instant`] and [`Kind::Step`].
    Text(String),
    /// Of [`Kind::Texts`], and both edges of a [`Kind::Window`].
    Texts(Vec<String>),
    /// Of [`Kind::Secret`].
    Secret(Secret),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Whole`], [`Kind::Milliseconds`] and [`Kind::Patience`]. What no `i128` holds counts as its nearest end.
    Whole(i128),
    /// Of [`Kind::Patience`], if it is without end.
    Endless,
    /// Of [`Kind::Pair`].
    Pair([i128; 2]),
}
