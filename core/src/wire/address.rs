//! The base addresses that requests are sent to, checked once.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::code::Code;
use crate::error::{Error, Result};

/// A checked base address: `{base_url}`, `{auth_url}` or `{cluster_endpoint}` of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseAddress(String);

impl BaseAddress {
    /// Checks an address and removes its trailing slashes. Plain http is accepted only for this
    /// machine, unless `allow_http` is set. `argument` names the argument in errors.
    ///
    /// It accepts only addresses that every HTTP stack interprets in the same way, so that requests
    /// go to the address that was checked: names of letters, digits, hyphens and underscores,
    /// literal IP addresses, and paths of unreserved characters.
    ///
    /// # Errors
    /// `invalid_base_address` and `insecure_base_address`.
    pub(crate) fn parse(argument: &'static str, text: &str, allow_http: bool) -> Result<Self> {
        let invalid = |message: &str| Error::argument(argument, Code::InvalidBaseAddress, message);
        if text.trim_ascii() != text {
            return Err(invalid(
                "this begins or ends with white space, such as the line break of a file",
            ));
        }
        if text.contains(['?', '#']) {
            return Err(invalid("a base address must not have a query or a fragment"));
        }
        let Some([scheme, authority, path]) = split(text) else {
            return Err(invalid("want an absolute address such as https://host.example/prefix"));
        };
        if authority.contains('@') {
            return Err(invalid(
                "an address must not contain user info; pass credentials in options or headers of their own",
            ));
        }
        let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
        let (host, port) = split_port(&authority);
        if !is_host(host) {
            return Err(invalid(
                "want a host name (punycode, if it is not ASCII) or an IP address",
            ));
        }
        if !port.is_none_or(is_port) {
            return Err(invalid("want a port from 1 to 65535"));
        }
        match scheme.as_str() {
            "https" => {}
            "http" if allow_http || is_this_machine(host) => {}
            "http" => {
                let message = "plain http would show tokens to the network; use https \
                               (http is for localhost, 127.0.0.1 and [::1])";
                return Err(Error::argument(argument, Code::InsecureBaseAddress, message));
            }
            _ => return Err(invalid("want https")),
        }
        if !is_path(path) {
            return Err(invalid("want a path without . and .., of characters that need no escape"));
        }
        let path = path.trim_end_matches('/');
        Ok(Self(format!("{scheme}://{authority}{path}")))
    }

    /// A fingerprint that identifies this address without showing it: 64 bits of FNV-1a in
    /// hexadecimal.
    pub(crate) fn fingerprint(&self) -> String {
        let hash = self.0.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        format!("{hash:016x}")
    }

    /// The address of an endpoint, whose path starts with a slash.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// Scheme, authority and path of an absolute address without a query or a fragment.
fn split(address: &str) -> Option<[&str; 3]> {
    let (scheme, rest) = address.split_once(':')?;
    let rest = rest.strip_prefix("//")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!authority.is_empty()).then_some([scheme, authority, path])
}

/// Host and port of an authority without user info.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let (before, last) = split_last(authority, b':');
    match before {
        // The colons of an IPv6 address are inside its brackets.
        Some(host) if !last.contains(']') => (host, Some(last)),
        _ => (authority, None),
    }
}

/// Splits a text at the last occurrence of an ASCII character. Without one, the second part is the
/// whole text.
fn split_last(text: &str, character: u8) -> (Option<&str>, &str) {
    match text.bytes().rposition(|byte| byte == character) {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    }
}

/// Whether a text is a port without a sign or leading zeros, which `u16::from_str` would accept.
fn is_port(port: &str) -> bool {
    let plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    plain && port.parse::<u16>().is_ok()
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address
            .strip_suffix(']')
            .is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && !label.starts_with('-') && label.bytes().all(plain)
    };
    // A browser reads a name that ends in a number as an IPv4 address, also in forms that other
    // stacks don't know.
    let is_number = |label: &str| label.starts_with(|first: char| first.is_ascii_digit());
    let (_, last) = split_last(host, b'.');
    host.split('.').all(is_label) && (!is_number(last) || host.parse::<Ipv4Addr>().is_ok())
}

/// Whether a path has only segments of characters that are sent unchanged, with complete percent
/// escapes. Segments `.` and `..`, also percent-encoded, are not allowed, because a host would
/// resolve them before sending.
fn is_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte);
    let escaped = path.split('%').skip(1).all(|after| {
        let hex = after.get(..2).unwrap_or_default();
        hex.len() == 2 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    path.bytes().all(plain) && escaped && !path.split('/').any(is_dots)
}

/// Whether a segment of a path is one or two dots, each of which may be percent-encoded.
fn is_dots(segment: &str) -> bool {
    let after_dot = |segment: &'_ [u8]| match segment {
        [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => Some(rest.len()),
        _ => None,
    };
    let bytes = segment.as_bytes();
    let Some(left) = after_dot(bytes) else {
        return false;
    };
    left == 0 || after_dot(&bytes[bytes.len() - left..]) == Some(0)
}

/// The host names that are always this machine.
fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The parser that many Rust programs use reads each accepted address in the same way.
        #[test]
        fn an_address_means_the_same_to_others(
            scheme in "(https?|HTTPS)",
            slashes in "(://|://|://|:/|//)",
            authority in "([a-z0-9.:-]{0,8}|\\[[0-9a-f:]{2,9}\\](:[0-9]{1,5})?|[ -~]{1,4}|[a-zé@%]{1,4})",
            path in "(/[ -~é]{0,6}|/[a-z0-9./-]{0,9})?",
        ) {
            let text = format!("{scheme}{slashes}{authority}{path}");
            if let Ok(BaseAddress(address)) = BaseAddress::parse("base_url", &text, true) {
                let uri: Uri = text.parse().expect("an address");
                let (scheme, authority) = (uri.scheme_str(), uri.authority());
                let (scheme, authority) = scheme.zip(authority).expect("an absolute address");
                let authority = authority.as_str().to_ascii_lowercase();
                let path = uri.path().trim_end_matches('/');
                prop_assert_eq!(address, format!("{scheme}://{authority}{path}"));
            }
        }
    }
}
