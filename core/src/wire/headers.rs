//! Headers that a caller adds to every request.

use super::request::Header;
use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;

/// Headers that go with every request of a client. Their values are treated as secrets, because one may be the key of a
/// gateway.
#[derive(Clone, Debug, Default)]
pub struct Headers(pub(crate) Vec<Header>);

/// What the client or its HTTP stack sets.
const RESERVED: &str = "authorization content-type content-length content-encoding transfer-encoding accept-encoding \
     host connection keep-alive te trailer upgrade expect proxy-authorization proxy-connection";

impl Headers {
    /// Checks names and values.
    ///
    /// # Errors `invalid_argument` for a header that the client or its HTTP stack sets, and for what can't be sent.
    pub fn new(pairs: impl IntoIterator<Item = (String, Secret)>) -> Result<Self> {
        let checked = pairs.into_iter().map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            if name.is_empty() || !name.bytes().all(is_of_name) {
                return Err(refused(
                    "the name of a header is letters, digits and hyphens",
                ));
            }
            if RESERVED.split_ascii_whitespace().any(|one| one == name) {
                return Err(refused(&format!(
                    "{name} can't be given: it is set for each request"
                )));
            }
            let text = value.expose();
            if text.trim() != text || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                let message = format!(
                    "the value of {name} has other characters than printable ASCII, or outer spaces"
                );
                return Err(refused(&message));
            }
            Ok((name.into(), value))
        });
        checked.collect::<Result<_>>().map(Self)
    }

    /// Adds a header, unless the caller has given it.
    pub(crate) fn or(mut self, name: &'static str, value: String) -> Self {
        if self.0.iter().all(|(given, _)| given != name) {
            self.0.push((name.into(), Secret::from(value)));
        }
        self
    }
}

impl Parameter for Headers {
    const KIND: Kind = Kind::Headers;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Headers(pairs) => Self::new(pairs),
            _ => Self::new([]),
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn refused(message: &str) -> Error {
    Error::new(Code::InvalidArgument, message)
}
