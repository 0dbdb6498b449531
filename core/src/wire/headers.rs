//! Headers that a caller adds to every request, and the headers of a response by their names.

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;

/// Headers that every request of a client contains. Their values are treated as secrets, because a value may be the key
/// of a gateway.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(String, Secret)>);

/// The headers that the client or its HTTP stack sets, in addition to all headers that begin with `content-` or
/// `proxy-`.
const RESERVED: &str = " authorization accept-encoding host connection keep-alive transfer-encoding te trailer upgrade expect ";

impl Headers {
    /// Takes a flat list, in which each name is followed by its value.
    ///
    /// # Errors
    /// `invalid_argument` for a header that the client or its HTTP stack sets, and for one that can't be sent.
    /// The message does not quote the header.
    pub fn new(flat: Vec<String>) -> Result<Self> {
        Self::checked(flat, None)
    }

    /// Like [`Headers::new`], for requests to which the client adds no token: one of the headers may be
    /// `authorization`.
    ///
    /// # Errors
    /// As [`Headers::new`].
    pub fn with_authorization(flat: Vec<String>) -> Result<Self> {
        Self::checked(flat, Some("authorization"))
    }

    fn checked(mut flat: Vec<String>, allowed: Option<&str>) -> Result<Self> {
        let refused = || Error::new(Code::InvalidArgument, WANTED);
        if !flat.len().is_multiple_of(2) {
            // The last name has no value.
            return Err(refused());
        }
        let mut headers = Vec::new();
        for pair in flat.chunks_exact_mut(2) {
            let [mut name, value] = [0, 1].map(|at| std::mem::take(&mut pair[at]));
            name.make_ascii_lowercase();
            let is_reserved = Some(&*name) != allowed
                && (name.starts_with("content-")
                    || name.starts_with("proxy-")
                    || RESERVED.split(' ').any(|one| one == name));
            let is_plain = name.bytes().all(is_of_name) && value.bytes().all(is_of_value);
            let ends = [value.as_bytes().first(), value.as_bytes().last()];
            // An empty name counts as reserved, too.
            if is_reserved || !is_plain || ends.contains(&Some(&b' ')) {
                return Err(refused());
            }
            headers.push((name, Secret::from(value)));
        }
        Ok(Self(headers))
    }

    /// Names, in lower case, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets().map(|(name, value)| (name, value.expose()))
    }

    /// Names, in lower case, and values, which are never printed.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The texts that no message may quote: the values of all headers except `user-agent`, each with and without a
    /// first word such as `Bearer`.
    pub(crate) fn unquotable(&self) -> impl Iterator<Item = Secret> {
        let values = self.iter().filter(|(name, _)| *name != "user-agent");
        let parts = values.flat_map(|(_, value)| {
            let after_scheme = value.split_once(' ').map(|(_, rest)| rest);
            [Some(value), after_scheme].into_iter().flatten()
        });
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(|part| Secret::from(part.to_owned()))
    }

    /// Adds the header `user-agent`, unless the caller has set it.
    pub(crate) fn or_user_agent(mut self, agent: &str) -> Self {
        if self.0.iter().all(|(name, _)| name != "user-agent") {
            self.0.push(("user-agent".to_owned(), Secret::from(agent.to_owned())));
        }
        self
    }
}

/// The values of the headers with that name, in the order in which they came.
pub fn named<'a>(headers: &[(&str, &'a str)], name: &str) -> impl Iterator<Item = &'a str> {
    let of_name = headers.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
    of_name.map(|(_, value)| *value)
}

impl Parameter for Headers {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        Self::new(Vec::from_value(value)?)
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_of_value(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

const WANTED: &str = "want names of letters, digits and hyphens, without those that each request has, such as authorization \
     and content-type, and values of printable ASCII";
