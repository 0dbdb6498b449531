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
const RESERVED: [&str; 15] = [
    "authorization",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "accept-encoding",
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
    "proxy-connection",
];

impl Headers {
    /// Takes names and values in turn.
    ///
    /// # Errors `invalid_argument` for a header that the client or its HTTP stack sets, and for what can't be sent.
    /// No message quotes any of it.
    pub fn new(mut flat: Vec<String>) -> Result<Self> {
        let mut headers = Vec::new();
        for pair in flat.chunks_exact_mut(2) {
            let [mut name, value] = [0, 1].map(|at| std::mem::take(&mut pair[at]));
            name.make_ascii_lowercase();
            if RESERVED.contains(&&*name) {
                return Err(refused(
                    "the client itself sets authorization, content-type and their like",
                ));
            }
            let fits = !name.is_empty()
                && name.bytes().all(is_of_name)
                && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
                && ![value.as_bytes().first(), value.as_bytes().last()].contains(&Some(&b' '));
            if !fits {
                return Err(refused(
                    "want names of letters, digits and hyphens, and values of printable ASCII",
                ));
            }
            headers.push((name, Secret::from(value)));
        }
        Ok(Self(headers))
    }

    /// Adds the name of the client, unless the caller has given one.
    pub(crate) fn or_user_agent(mut self, agent: &str) -> Self {
        if self.0.iter().all(|(name, _)| name != "user-agent") {
            self.0
                .push(("user-agent".to_owned(), Secret::from(agent.to_owned())));
        }
        self
    }
}

impl Parameter for Headers {
    const KIND: Kind = Kind::Headers;

    fn from_value(value: Value) -> Result<Self> {
        Self::new(Vec::from_value(value)?)
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn refused(message: &str) -> Error {
    Error::new(Code::InvalidArgument, message)
}
