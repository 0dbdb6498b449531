//! What an error of the network means, in the names that the core knows (`core/src/calls/broken.rs`).

use std::error::Error;
use std::io;
use std::iter;

use rustls::CertificateError;

/// All errors that caused an error, beginning with itself.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |link| inner(*link))
}

/// What caused an error, also inside of an `io::Error` that only wraps it.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    wrapped
        .map(|inner| inner as &(dyn Error + 'static))
        .or_else(|| error.source())
}

/// The name of what happened.
pub(crate) fn name_of(error: &(dyn Error + 'static)) -> &'static str {
    let links: Vec<_> = chain(error).collect();
    if let Some(name) = links.iter().find_map(|link| certificate_name(*link)) {
        return name;
    }
    let says = |part: &str| links.iter().any(|link| link.to_string().contains(part));
    if says("tunnel") || says("proxy") || says("socks") {
        return "ProxyError";
    }
    if says("dns error") {
        return "ENOTFOUND";
    }
    let system = links
        .iter()
        .filter_map(|link| link.downcast_ref::<io::Error>());
    let mut names = system.filter_map(system_name);
    if let Some(name) = names.next() {
        return name;
    }
    match links
        .iter()
        .any(|link| link.downcast_ref::<rustls::Error>().is_some())
    {
        true => "SSLError",
        false => "RemoteProtocolError",
    }
}

fn certificate_name(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let Some(rustls::Error::InvalidCertificate(certificate)) =
        error.downcast_ref::<rustls::Error>()
    else {
        return None;
    };
    Some(match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "CERT_HAS_EXPIRED",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "CERT_NOT_YET_VALID"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "ERR_TLS_CERT_ALTNAME_INVALID"
        }
        CertificateError::UnknownIssuer => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        CertificateError::Revoked => "CERT_REVOKED",
        _ => "CERT_UNTRUSTED",
    })
}

fn system_name(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => "ECONNRESET",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::InvalidData if error.get_ref().is_none() => "DecodingError",
        _ => return None,
    })
}
