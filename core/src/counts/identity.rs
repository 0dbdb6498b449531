//! Whose counts a table has: the cluster and the client.

use std::sync::Arc;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::spelling::{Name, Words, words};

/// The cluster and the client that counts belong to, as a text without a secret. It may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity(Option<Arc<str>>);

impl Identity {
    /// The identity with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Some(text.into()))
    }

    /// The text; `None` if the identity is unknown.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The identity of the sum of these counts and others. Counts with an unknown identity may be
    /// added to any others.
    ///
    /// # Errors
    /// `incompatible_tables` if both are known and differ.
    pub fn with(&self, other: &Self, argument: &'static str) -> Result<Self> {
        match (self.as_str(), other.as_str()) {
            (Some(own), Some(others)) if own != others => {
                let message = foreign(own, others);
                Err(Error::argument(argument, Code::IncompatibleTables, message))
            }
            (None, _) => Ok(other.clone()),
            _ => Ok(self.clone()),
        }
    }
}

/// The message about counts of two identities: whose they are, and what to do.
pub(crate) fn foreign(own: &str, others: &str) -> Words {
    words![
        ["these are counts of ", others, ", not of ", own].concat(),
        "; if both are the same, give clients the ",
        Name::from("identity"),
        [" \"", own, "\""].concat()
    ]
}
