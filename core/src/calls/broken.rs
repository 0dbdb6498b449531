//! The error of an exchange that failed in the host.

use super::step::HostFailure;
use crate::code::Code;
use crate::error::Error;

/// The error of an exchange that failed in the host.
pub(super) fn broken(failure: HostFailure, detail: &str) -> Error {
    let (code, message) = match failure {
        HostFailure::Network => (Code::NetworkFailed, "the exchange broke"),
        HostFailure::Timeout => (Code::TimedOut, "the exchange took too long"),
    };
    if is_error_name(detail) {
        Error::new(code, format!("{message}: {detail}"))
    } else {
        Error::new(code, message)
    }
}

/// Whether a text is the name of a host's error (`ECONNRESET`, `UND_ERR_SOCKET`,
/// `CERT_HAS_EXPIRED`, `ConnectError`), so that it can't contain a secret.
fn is_error_name(detail: &str) -> bool {
    let is_code = detail
        .bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'_'))
        && (detail.starts_with('E')
            || ["_ERR_", "CERT", "SIGNATURE"].iter().any(|part| {
                detail
                    .as_bytes()
                    .windows(part.len())
                    .any(|piece| piece == part.as_bytes())
            }));
    let is_class = detail.bytes().all(|byte| byte.is_ascii_alphabetic())
        && ["Error", "Timeout", "Exception", "Closed"]
            .iter()
            .any(|end| detail.ends_with(end));
    detail.len() <= 40 && (is_code || is_class)
}
