//! The error of an exchange that failed in the host: what happened, by the names that hosts have for it.

use super::step::HostFailure;
use crate::code::Code;
use crate::error::Error;
use crate::wire::request::Request;

const REFUSED: &str = "the server's certificate is refused: ";

/// What hosts call it, what that means, and whether it stays so until somebody changes something.
type Trouble = (&'static str, &'static str, bool);

/// What may happen on the way to a server.
#[rustfmt::skip]
const TROUBLES: &[Trouble] = &[
    ("ENOTFOUND EAI_AGAIN", "the server's name was not found: is the address right, and is this machine online?", false),
    ("ECONNREFUSED ConnectionRefused", "the server refused the connection: is the port right, and is the server up?", false),
    ("EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN", "there is no way to the server from this network", false),
    ("ECONNRESET EPIPE ECONNABORTED UND_ERR_SOCKET", "the connection was closed or reset before the response was complete", false),
    ("RemoteProtocolError", "the server closed the connection before the response was complete, or did not answer in HTTP", false),
    ("ProxyError UND_ERR_PRX_TLS", "the proxy failed, or refused", false),
    ("SSLError EPROTO", "TLS failed: does the server speak https at this port?", false),
    ("OFFLINE", "the browser is offline", false),
    ("MIXED_CONTENT", "a page that came by https can't ask an address that begins with http:", true),
    ("NO_FETCH", "this host has no fetch: pass one as `fetch`", true),
    ("NO_RESPONSE", "what `fetch` gave is no Response", true),
];

/// What may be wrong with a certificate. All of these last.
#[rustfmt::skip]
const CERTIFICATES: &[(&str, &str)] = &[
    ("CERT_HAS_EXPIRED", "it has expired"),
    ("CERT_NOT_YET_VALID", "it is not valid yet; is this machine's clock right?"),
    ("DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN", "it is self-signed, or issued by an authority of its own"),
    ("UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "its issuer is not known here"),
    ("ERR_TLS_CERT_ALTNAME_INVALID CERT_HOSTNAME_MISMATCH", "it is for another name"),
];

/// The error of an exchange with that server.
pub(super) fn broken(failure: HostFailure, detail: &str, server: &str) -> Error {
    let has = |names: &str| names.split(' ').any(|name| name == detail);
    let known = TROUBLES.iter().find(|trouble| has(trouble.0));
    let named = known.is_some() || is_error_name(detail);
    let (code, message, lasts) = match failure {
        HostFailure::Timeout => (
            Code::TimedOut,
            "the exchange took too long".to_owned(),
            false,
        ),
        HostFailure::Hidden => (Code::NetworkFailed, hidden(detail), false),
        HostFailure::Network => {
            let (message, lasts) = if let Some((_, words, lasts)) = known {
                ((*words).to_owned(), *lasts)
            } else if named
                && ["CERT", "SIGNATURE"]
                    .iter()
                    .any(|part| detail.contains(part))
            {
                let why = CERTIFICATES.iter().find(|(names, _)| has(names));
                let why = why.map_or("it can't be verified", |(_, words)| words);
                (format!("{REFUSED}{why}"), true)
            } else {
                ("the exchange broke".to_owned(), false)
            };
            (Code::NetworkFailed, message, lasts)
        }
    };
    let place = match named {
        true => format!("{message} ({detail}, {server})"),
        false => format!("{message} ({server})"),
    };
    let error = Error::new(code, place);
    if lasts { error.lasting() } else { error }
}

/// What may have happened where a browser tells a page nothing; `origin` is that of the page.
fn hidden(origin: &str) -> String {
    let is_origin = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-_[]".contains(&byte);
    let origin = match !origin.is_empty() && origin.len() <= 300 && origin.bytes().all(is_origin) {
        true => origin,
        false => "the page's origin",
    };
    format!(
        "the browser tells a page no more than that: either the server can't be reached, or its answers lack \
         CORS headers. They would have to say `Access-Control-Allow-Origin: {origin}`, and those to OPTIONS \
         also `Access-Control-Allow-Headers: authorization, content-type`"
    )
}

/// Host and port that a request goes to.
pub(super) fn server_of(request: &Request) -> String {
    let url = request.url();
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    after_scheme
        .split('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Whether a text is the name of a host's error (`ECONNRESET`, `UND_ERR_SOCKET`,
/// `CERT_HAS_EXPIRED`, `ConnectError`), so that it can't contain a secret.
fn is_error_name(detail: &str) -> bool {
    let is_code = detail
        .bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'_'))
        && (detail.starts_with('E')
            || ["_ERR_", "CERT", "SIGNATURE"]
                .iter()
                .any(|part| detail.contains(part)));
    let is_class = detail.bytes().all(|byte| byte.is_ascii_alphabetic())
        && ["Error", "Timeout", "Exception", "Closed"]
            .iter()
            .any(|end| detail.ends_with(end));
    detail.len() <= 40 && (is_code || is_class)
}
