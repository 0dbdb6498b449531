//! Where an export is sent, and what happens when something fails.

use std::fmt;

use super::delivery::{Delivery, Transport};
use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::patience::Patience;
use crate::wire::address::BaseAddress;
use crate::wire::headers::Headers;

crate::names! {
    /// What happens to a message that was sent but not acknowledged.
    #[non_exhaustive]
    pub enum Guarantee {
        /// It is sent again, and may be counted twice.
        AtLeastOnce = "at_least_once",
        /// It is not sent again, and may be lost.
        AtMostOnce = "at_most_once",
    }
}

/// How long to wait for a failing destination in total, by default.
const PATIENCE_MS: u64 = 900_000;

/// A part of a path that has at least this length may be a secret. The paths that destinations document have shorter parts.
const SECRET_PART: usize = 16;

/// The same for a destination whose address is a secret. Shorter parts, such as `v1`, reveal nothing.
const HIDDEN_PART: usize = 4;

crate::options! {
    /// Where an export is sent, and what happens when something fails.
    #[derive(Clone)]
    pub struct PushOptions {
        /// The whole address that messages are sent to, with its path.
        ///
        /// Such as `https://…/api/v1/write`, or `udp://host:8125` for StatsD and DogStatsD.
        url: String [Address],
        /// Headers of each request, such as `authorization`.
        ///
        /// No message quotes their values.
        headers: TargetHeaders = TargetHeaders::default(),
        /// Allows headers, or a password in the address, to be sent by plain http to another machine.
        ///
        /// Others on the network can then read them.
        allow_http: bool = false,
        /// What happens to a message that was sent but not acknowledged, because the connection broke.
        ///
        /// `at_least_once` sends it again, so it may be counted twice. `at_most_once` does not, so it may be lost.
        /// Prometheus, VictoriaMetrics and InfluxDB accept a repeated message without harm: for them, it is always sent
        /// again, and this option is refused. For other destinations, the default is `at_most_once`, because a loss is
        /// reported, but nothing shows a count that was added twice.
        guarantee: Option<Guarantee> = None,
        /// How long to wait in total for a destination that fails or requests pauses.
        patience_ms: Patience = Patience::Milliseconds(PATIENCE_MS),
        /// How many samples an earlier push of the same export has finished: this one resumes after them.
        finished: u64 [Host] = 0,
        /// How many of them are in doubt and were in no report yet: an earlier push was sending them when it ended. The
        /// report counts them as `unsure`. If this is a number, the push also reports how many samples are in doubt
        /// before it sends them.
        in_doubt: Option<u64> [Host] = None,
        /// The seed of the random part of waits.
        seed: u64 [Host] = 0,
    }
}

/// Headers for another system. Unlike in the headers of a client, the caller may set `authorization`.
#[derive(Clone, Debug, Default)]
pub struct TargetHeaders(pub(super) Headers);

impl TargetHeaders {
    /// Takes a flat list, in which each name is followed by its value.
    ///
    /// # Errors
    /// `invalid_argument` for a header that the HTTP stack sets, and for one that can't be sent. No message quotes the
    /// header.
    pub fn new(flat: Vec<String>) -> Result<Self> {
        Headers::with_authorization(flat).map(Self)
    }

    /// Whether there is a header of a name, in lower case.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }
}

impl Parameter for TargetHeaders {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        Self::new(Vec::from_value(value)?)
    }
}

impl PushOptions {
    /// Checks the options for this delivery, before anything is requested or stored.
    ///
    /// # Errors
    /// `invalid_argument` for a guarantee if the destination accepts repeated messages without harm;
    /// `invalid_base_address` and `insecure_base_address` for the address.
    pub fn check(&self, delivery: &Delivery) -> Result<()> {
        self.target(delivery).map(drop)
    }

    /// The checked address.
    pub(super) fn target(&self, delivery: &Delivery) -> Result<Target> {
        if delivery.is_repeatable && self.guarantee.is_some() {
            let message = "this destination takes the same message again without harm, so each is counted exactly once; \
                           leave this out";
            return Err(Error::argument("guarantee", Code::InvalidArgument, message));
        }
        Target::new(self, delivery)
    }

    /// All texts that are or may be secrets:
    /// - The values of headers (except `user-agent`), with and without a first word such as `Bearer`, and what the
    ///   credentials of `Basic` contain.
    /// - The passwords and the longer values of the address's query, and the longest parts of its path.
    /// - If the delivery hides the address: the address, its path, and all but the shortest parts of the path.
    ///
    /// A text comes before the texts that it contains: once a part is masked, the whole text is not found any more, and its
    /// rest would be shown.
    pub(super) fn secrets(&self, delivery: &Delivery) -> Vec<Secret> {
        let headers = self.headers.0.unquotable();
        // A server may quote what it has decoded.
        let basic = self.headers.0.iter().filter_map(|(_, value)| {
            let (scheme, rest) = value.split_once(' ')?;
            let is_basic = scheme.eq_ignore_ascii_case("basic");
            String::from_utf8(decoded(rest).filter(|_| is_basic)?).ok()
        });
        let passwords = basic.flat_map(|pair| {
            let password = pair.split_once(':').map(|(_, password)| password.to_owned());
            [Some(pair), password].into_iter().flatten()
        });
        let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let path = base.strip_prefix(origin(base)).unwrap_or_default();
        let (whole, shortest) = match delivery.hides_address {
            true => (vec![self.url.as_str(), path], HIDDEN_PART),
            false => (Vec::new(), SECRET_PART),
        };
        let parts = path.split('/').filter(|part| part.len() >= shortest);
        let parts = parts.flat_map(|part| [Some(part.to_owned()), percent_decoded(part)]);
        let values = query.split('&').filter_map(|pair| pair.split_once('='));
        let values = values.filter(|(name, value)| is_password(name) || value.len() >= 8);
        let values = values.flat_map(|(_, value)| [Some(value.to_owned()), percent_decoded(value)]);
        let whole = whole.into_iter().filter(|text| *text != "/");
        let whole = whole.map(str::to_owned);
        let texts = whole.chain(values.flatten()).chain(parts.flatten());
        let texts = texts.chain(passwords);
        let texts = texts.filter(|secret| !secret.is_empty());
        headers.chain(texts.map(Secret::from)).collect()
    }
}

/// Shows only the origin of the address, because the rest may be a secret.
impl fmt::Debug for PushOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = origin(&self.url);
        let host = origin.rsplit_once('@').map_or(origin, |(_, host)| host);
        f.debug_struct("PushOptions").field("url", &host).finish_non_exhaustive()
    }
}

/// The address of a destination.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) url: String,
    /// The origin of the address. Messages show only this part, because the path may be a secret, as in the addresses of chats.
    pub(super) shown: String,
}

impl Target {
    fn new(options: &PushOptions, delivery: &Delivery) -> Result<Self> {
        let url = options.url.as_str();
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let is_query =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
        if !query.bytes().all(is_query) {
            let message = "want a query without characters that must be percent-encoded";
            return Err(invalid(message));
        }
        match delivery.transport {
            Transport::Http => {
                let has_header = options.headers.0.iter().next().is_some();
                let is_secret = delivery.hides_address || has_header || has_password(query);
                let may_be_plain = options.allow_http || !is_secret;
                BaseAddress::parse("url", base, may_be_plain)?;
            }
            Transport::Datagrams => {
                let authority = url.strip_prefix("udp://").map(|rest| rest.trim_end_matches('/'));
                let has_port = |authority: &str| {
                    let port = authority.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
                    matches!(port, Some(Ok(1..)))
                };
                let authority = authority.filter(|authority| has_port(authority));
                let authority = authority.ok_or_else(|| {
                    invalid("want udp://host:port, as this format is sent in datagrams")
                })?;
                BaseAddress::parse("url", &format!("http://{authority}"), true)?;
            }
        }
        Ok(Self { url: url.to_owned(), shown: origin(base).to_owned() })
    }
}

/// The bytes of a text in base64; `None` for another text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for character in text.trim_end_matches('=').bytes() {
        let sextet = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(sextet), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

/// An address without its path and its query.
fn origin(url: &str) -> &str {
    let host = url.find("//").map_or(0, |at| at + 2);
    let end = url[host..].find(['/', '?', '#']);
    &url[..end.map_or(url.len(), |at| host + at)]
}

/// Whether a query has a parameter that systems read passwords and tokens from.
fn has_password(query: &str) -> bool {
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.any(is_password)
}

/// Whether systems read passwords and tokens from the parameter of this name, such as `api_key`, `api-key` or `apiKey`.
fn is_password(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "p",
        "password",
        "token",
        "apikey",
        "key",
        "accesstoken",
        "authkey",
        "auth",
        "secret",
        "sig",
    ];
    let is_known = |known: &&str| {
        let name = name.bytes().filter(|byte| !b"-_".contains(byte));
        name.map(|byte| byte.to_ascii_lowercase()).eq(known.bytes())
    };
    NAMES.iter().any(is_known)
}

/// A value of a query as a server reads it; `None` if it isn't the percent-encoding of a text.
fn percent_decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn invalid(message: &str) -> Error {
    Error::argument("url", Code::InvalidBaseAddress, message)
}
