//! The address of a receiver, checked once.

use tallyfold::sending::BaseAddress;
use tallyfold::{Code, Error, Result};

use super::delivery::Way;
use super::options::PushOptions;

/// The address of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    /// The address without its query, which may hold a password: for messages.
    pub(crate) shown: String,
}

impl Target {
    pub(crate) fn new(options: &PushOptions, way: Way) -> Result<Self> {
        let url = options.url.as_str();
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let is_query =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
        if !query.bytes().all(is_query) {
            let message = "want a query without characters that must be percent-encoded";
            return Err(invalid(message));
        }
        let shown = base.to_owned();
        match way {
            Way::Http => {
                let has_header = options.headers.0.iter().next().is_some();
                let may_be_plain = options.allow_http || !(has_header || has_password(query));
                BaseAddress::parse("url", base, may_be_plain)?;
            }
            Way::Datagrams => {
                let authority = url
                    .strip_prefix("udp://")
                    .map(|rest| rest.trim_end_matches('/'));
                let has_port = |authority: &str| {
                    let port = authority
                        .rsplit_once(':')
                        .map(|(_, port)| port.parse::<u16>());
                    matches!(port, Some(Ok(1..)))
                };
                let authority = authority.filter(|authority| has_port(authority));
                let authority = authority.ok_or_else(|| {
                    invalid("want udp://host:port, as this format is sent in datagrams")
                })?;
                BaseAddress::parse("url", &format!("http://{authority}"), true)?;
            }
        }
        Ok(Self {
            url: url.to_owned(),
            shown,
        })
    }
}

/// Whether a query has a parameter that systems read passwords and tokens from.
fn has_password(query: &str) -> bool {
    const NAMES: [&str; 6] = ["p", "password", "token", "api_key", "apikey", "key"];
    let mut names = query
        .split('&')
        .map(|pair| pair.split('=').next().unwrap_or_default());
    names.any(|name| NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

fn invalid(message: &str) -> Error {
    Error::argument("url", Code::InvalidBaseAddress, message)
}
