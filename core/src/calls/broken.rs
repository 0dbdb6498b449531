//! The error of an exchange that failed in the host. Its message explains the name that the host
//! has for the failure.

use super::step::HostFailure;
use crate::code::Code;
use crate::error::Error;

const REFUSED: &str = "the server's certificate is refused: ";

/// The names that hosts have for a failure, what it means, and whether it lasts until somebody
/// changes something.
type Trouble = (&'static str, &'static str, bool);

/// The known failures of a connection to a server or a proxy.
#[rustfmt::skip]
const TROUBLES: &[Trouble] = &[
    ("ENOTFOUND EAI_AGAIN", "the server's name was not found: is the address right, and is there a network?", false),
    ("ECONNREFUSED", "the server refused the connection: is the port right, and is the server up?", false),
    ("EHOSTUNREACH ENETUNREACH", "there is no way to the server from here", false),
    ("EACCES EPERM", "the operating system does not permit it: is this a broadcast address, or does a firewall block it?", false),
    ("ECONNRESET EPIPE UND_ERR_SOCKET", "the connection was closed or reset before the response was complete", false),
    ("RemoteProtocolError", "the connection was closed before the response was complete, or the response was not HTTP", false),
    ("SurplusError", "the connection delivered bytes that no request explains, so the next response may belong to another request", false),
    ("PROXY_ENOTFOUND PROXY_EAI_AGAIN", "the proxy's name was not found: is its address right, and is there a network?", false),
    ("PROXY_ECONNREFUSED", "the proxy refused the connection: is its port right, and is it up?", false),
    ("PROXY_EHOSTUNREACH PROXY_ENETUNREACH", "there is no way to the proxy from here", false),
    ("ProxyError UND_ERR_PRX_TLS", "the proxy failed, or refused", false),
    ("SSLError EPROTO", "TLS failed: does the server speak https at this port?", false),
    ("OFFLINE", "the browser is offline", false),
    ("MIXED_CONTENT", "an https page can't send requests to an http address", true),
    ("NO_FETCH", "this runtime has no fetch: pass one as `fetch`", true),
    ("NO_RESPONSE", "`fetch` returned something other than a Response", true),
    ("CERT_HAS_EXPIRED", "it has expired", true),
    ("CERT_NOT_YET_VALID", "it is not valid yet: is the clock here right?", true),
    ("DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN", "it is self-signed, or its authority is", true),
    ("UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "its issuer is not known here", true),
    ("ERR_TLS_CERT_ALTNAME_INVALID CERT_HOSTNAME_MISMATCH", "it is for another name", true),
];

/// The name that hosts have for a connection that was not made within the time limit.
pub const UNCONNECTED: &str = "ETIMEDOUT";

/// The error of an exchange with that address.
#[must_use]
pub fn broken(failure: HostFailure, detail: &str, url: &str) -> Error {
    let is_name = |names: &str| names.split(' ').any(|name| name == detail);
    let trouble = TROUBLES.iter().find(|(names, ..)| is_name(names));
    let named = trouble.is_some() || is_error_name(detail);
    let is_certificate = named && (has_part(detail, "CERT") || has_part(detail, "SIGNATURE"));
    let (begin, words, lasts) = match (failure, trouble) {
        (HostFailure::NotSent, None) if detail == UNCONNECTED => {
            let message = [
                "no connection in time: is the address right, and does a firewall let it through? (",
                url,
                ")",
            ];
            return Error::new(Code::TimedOut, message.concat());
        }
        (HostFailure::Timeout, _) => {
            let message = ["the exchange took too long (", url, ")"];
            return Error::new(Code::TimedOut, message.concat());
        }
        (HostFailure::Hidden, _) => return hidden(detail, url),
        (_, Some(&(_, words, lasts))) if is_certificate => (REFUSED, words, lasts),
        (_, Some(&(_, words, lasts))) => ("", words, lasts),
        (_, None) if is_certificate => (REFUSED, "it can't be verified", true),
        (HostFailure::NotSent, None) => ("", "there was no connection", false),
        (_, None) => ("", "the exchange broke", false),
    };
    let (name, comma) = if named { (detail, ", ") } else { ("", "") };
    let message = [begin, words, " (", name, comma, url, ")"].concat();
    let error = Error::new(Code::NetworkFailed, message);
    if lasts { error.lasting() } else { error }
}

/// The error of an exchange whose failure a browser hides from the page; `origin` is the page's
/// origin.
fn hidden(origin: &str, url: &str) -> Error {
    let origin = match origin.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => origin,
        false => "the page's origin",
    };
    let message = [
        "the server can't be reached, or sends no CORS headers, which would have to be \
         `Access-Control-Allow-Origin: ",
        origin,
        "` and, to OPTIONS, `Access-Control-Allow-Headers: authorization, content-type` (",
        url,
        ")",
    ];
    Error::new(Code::NetworkFailed, message.concat())
}

/// Whether a name contains a part. (`str::contains` would add more than a kilobyte to the WebAssembly.)
fn has_part(name: &str, part: &str) -> bool {
    let mut pieces = name.as_bytes().windows(part.len());
    pieces.any(|piece| piece == part.as_bytes())
}

/// Whether a text is the name of a host's error (`ECONNRESET`, `UND_ERR_SOCKET`,
/// `CERT_HAS_EXPIRED`, `ConnectError`), so that it can't contain a secret.
fn is_error_name(detail: &str) -> bool {
    let is_code = detail.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_'))
        && (detail.starts_with('E')
            || ["_ERR_", "CERT", "SIGNATURE"].iter().any(|part| has_part(detail, part)));
    let is_class = detail.bytes().all(|byte| byte.is_ascii_alphabetic())
        && ["Error", "Timeout", "Exception", "Closed"].iter().any(|end| detail.ends_with(end));
    detail.len() <= 40 && (is_code || is_class)
}
