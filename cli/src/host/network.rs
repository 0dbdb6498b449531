//! Sets up connections to services: the proxies, and the certificates that the command trusts. Also gives network errors the
//! names that the core recognizes (`core/src/calls/broken.rs`).

use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, ClientBuilder, Proxy, redirect};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tower::util::MapRequestLayer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::arguments::given::{Origin, Setting};
use crate::config::settings::NetworkSettings;
use crate::failure::{Failure, Result};

/// The HTTP clients of a cluster, a destination or a receiver. They send the core's requests unchanged: they do not
/// follow redirects, retry, or decode.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    usual: Client,
    /// The client for requests to this machine, if the usual client has a proxy. Such requests may be plain http, so a
    /// proxy on another machine must not see them.
    direct: Option<Client>,
}

impl Http {
    /// Creates the clients with these settings.
    ///
    /// # Errors
    /// For a file without certificates, and for a proxy's address that can't be used.
    pub(crate) fn new(settings: &NetworkSettings) -> Result<Self> {
        let tls = settings.ca_file.as_deref().map(trusting).transpose()?;
        let proxy = settings.proxy.as_ref().map(proxy_of).transpose()?;
        if proxy.is_none() {
            check_proxies_of_environment(&|name| std::env::var(name).ok())?;
        }
        let has_proxy = proxy.is_some() || has_proxy(&Matcher::from_system());
        let usual = || match &proxy {
            Some(proxy) => builder().proxy(proxy.clone()),
            None => builder(),
        };
        let direct = || build(|| builder().no_proxy(), tls.as_ref());
        Ok(Self { usual: build(usual, tls.as_ref())?, direct: has_proxy.then(direct).transpose()? })
    }

    /// Returns the client for requests to an address.
    pub(crate) fn to(&self, url: &str) -> &Client {
        let is_here = |_: &&Client| {
            let uri = url.parse::<Uri>();
            uri.is_ok_and(|uri| uri.host().is_some_and(is_this_machine))
        };
        let direct = self.direct.as_ref().filter(is_here);
        direct.unwrap_or(&self.usual)
    }
}

/// Refuses an unusable proxy address in the environment. The client would ignore the address, and connect without a proxy. The
/// address may contain a password, so no message quotes it.
fn check_proxies_of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Result<()> {
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        for name in [name.to_owned(), name.to_ascii_lowercase()] {
            let address = variable(&name).filter(|address| !address.is_empty());
            let is_usable = |address: String| has_proxy(&Matcher::builder().all(address).build());
            if !address.is_none_or(is_usable) {
                let text = format!(
                    "environment variable {name}: want an address such as http://proxy.example:3128"
                );
                return Err(Failure::usage(text));
            }
        }
    }
    Ok(())
}

/// Returns whether requests to at least some hosts go through a proxy.
fn has_proxy(matcher: &Matcher) -> bool {
    // `NO_PROXY` may exempt some hosts from the proxy. It is unlikely to name `a.invalid`, because no such host exists.
    let somewhere = ["http://a.invalid", "https://a.invalid"];
    let uris = somewhere.iter().filter_map(|address| address.parse().ok());
    uris.into_iter().any(|uri: Uri| matcher.intercept(&uri).is_some())
}

/// Returns whether a host is this machine. An IPv6 address may be in brackets.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => {
            let name = bare.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

fn build(builder: impl Fn() -> ClientBuilder, tls: Option<&ClientConfig>) -> Result<Client> {
    let client = match tls {
        Some(tls) => builder().tls_backend_preconfigured(tls.clone()).build(),
        // A minimal container may have no system certificates. The fallback trusts no certificate, so that at least http works.
        None => builder().build().or_else(|_| builder().tls_certs_only([]).build()),
    };
    client.map_err(|error| {
        let names = chain(&error).map(ToString::to_string);
        Failure::usage(format!("the network can't be set up: {}", names.last().unwrap_or_default()))
    })
}

fn builder() -> ClientBuilder {
    // An error means that the provider was installed before.
    let _ = default_provider().install_default();
    Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // Responses then contain the server's certificate. The doctor shows when it expires.
        .tls_info(true)
        .connector_layer(MapRequestLayer::new(note_connection))
        .http1_only()
}

tokio::task_local! {
    /// Whether the current work has opened a connection. If not, the work has reused one.
    static HAS_CONNECTED: Cell<bool>;
}

/// Runs `work`. Returns its result, and whether the client has opened a connection for it.
pub(crate) async fn noting_connections<T>(work: impl Future<Output = T>) -> (T, bool) {
    let noting = async { (work.await, HAS_CONNECTED.with(Cell::get)) };
    HAS_CONNECTED.scope(Cell::new(false), noting).await
}

/// Records that a connection is opened. The client calls this before its connector. `target` is returned unchanged.
fn note_connection<T>(target: T) -> T {
    // Outside of `noting_connections`, there is no cell to set.
    let _ = HAS_CONNECTED.try_with(|has_connected| has_connected.set(true));
    target
}

/// Reads the proxy from a setting. The address may contain a password, so no message quotes it.
fn proxy_of(setting: &Setting) -> Result<Proxy> {
    let place = match &setting.origin {
        Origin::Flag => "proxy".to_owned(),
        origin => origin.to_string(),
    };
    let refused =
        || Failure::usage(format!("{place}: want an address such as http://proxy.example:3128"));
    let address = setting.secret()?.ok_or_else(refused)?;
    Proxy::all(address.expose()).map_err(|_| refused())
}

/// Returns an error and its chain of causes.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |link| inner(*link))
}

/// Returns the cause of an error. The cause of an `io::Error` that wraps another error is the wrapped error.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
}

/// Returns the core's name for a network error.
pub(crate) fn name_of(error: &(dyn Error + 'static)) -> &'static str {
    let links: Vec<_> = chain(error).collect();
    if let Some(name) = links.iter().find_map(|link| certificate_name(*link)) {
        return name;
    }
    let mentions = |part: &str| links.iter().any(|link| link.to_string().contains(part));
    let system = links.iter().filter_map(|link| link.downcast_ref::<io::Error>());
    let name = match mentions("dns error") {
        true => Some("ENOTFOUND"),
        false => system.filter_map(system_name).next(),
    };
    if mentions("tunnel") || mentions("proxy") || mentions("socks") {
        return match name {
            Some("ENOTFOUND") => "PROXY_ENOTFOUND",
            Some("ECONNREFUSED") => "PROXY_ECONNREFUSED",
            Some("EHOSTUNREACH") => "PROXY_EHOSTUNREACH",
            Some("ENETUNREACH") => "PROXY_ENETUNREACH",
            _ => "ProxyError",
        };
    }
    if let Some(name) = name {
        return name;
    }
    match links.iter().any(|link| link.downcast_ref::<rustls::Error>().is_some()) {
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
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::InvalidData if error.get_ref().is_none() => "DecodingError",
        _ => return None,
    })
}

/// The maximum number of bytes that are read from a file of certificates. All certificates that a system trusts take up about a
/// quarter of a megabyte together.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Creates a TLS configuration that trusts the system's authorities and the certificates in a file.
///
/// # Errors
/// For a file that can't be read, that contains no certificate, or whose certificates have all expired.
pub(crate) fn trusting(path: &Path) -> Result<ClientConfig> {
    let own = valid(path)?;
    let refused = |error: rustls::Error| {
        Failure::usage(format!("{}: can't be used: {error}", path.display()))
    };
    let provider = Arc::new(default_provider());
    let verifier = Certificates {
        authorities: Verifier::new_with_extra_roots(own.clone(), Arc::clone(&provider))
            .map_err(refused)?,
        own,
    };
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(refused)?.dangerous();
    let mut config =
        config.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the certificates in a file that have not expired. TLS itself does not check whether an authority has expired.
fn valid(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wanted = |what: &str| Failure::usage(format!("{}: want {what}", path.display()));
    let as_failure = |error: io::Error| Failure::file("read", path, &error);
    if !std::fs::metadata(path).map_err(as_failure)?.is_file() {
        return Err(wanted("a file of certificates"));
    }
    let mut pem = Vec::new();
    let file = File::open(path).map_err(as_failure)?;
    file.take(MOST_BYTES).read_to_end(&mut pem).map_err(as_failure)?;
    let all: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| wanted("PEM certificates of authorities"))?;
    let today = SystemTime::now().duration_since(UNIX_EPOCH);
    let today = UnixTime::since_unix_epoch(today.unwrap_or_default());
    let is_over =
        |der: &CertificateDer<'_>| check_time(der, today) == Err(CertificateError::Expired);
    let (expired, valid): (Vec<_>, Vec<_>) = all.into_iter().partition(is_over);
    match (valid.is_empty(), expired.is_empty()) {
        (false, _) => Ok(valid),
        (true, true) => Err(wanted("PEM certificates of authorities")),
        (true, false) => Err(wanted("a certificate that has not expired")),
    }
}

/// Accepts a server's certificate in two cases: if an authority of the system or in the file has issued it, or if it is in the
/// file itself, has the right name and is valid now. The second case is for self-signed certificates: `openssl req -x509` marks
/// them as authorities, and the usual verification refuses a server's certificate with that mark.
#[derive(Debug)]
struct Certificates {
    authorities: Verifier,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Certificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if !self.own.contains(end_entity) {
            return self.authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        check_time(end_entity, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Checks that a certificate is valid at that time.
fn check_time(
    der: &CertificateDer<'_>,
    now: UnixTime,
) -> std::result::Result<(), CertificateError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let now = ASN1Time::from_timestamp(now).map_err(|_| CertificateError::BadEncoding)?;
    let validity = certificate.validity();
    if now < validity.not_before {
        return Err(CertificateError::NotValidYet);
    }
    if now > validity.not_after {
        return Err(CertificateError::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_proxy_address_is_refused() {
        let check = |name: &'static str, value: &'static str| {
            check_proxies_of_environment(&|asked| (asked == name).then(|| value.to_owned()))
        };
        for value in [
            "",
            "proxy.example:3128",
            "http://user:secret@proxy.example:3128",
            "https://proxy.example",
            "socks5://proxy.example:1080",
            "socks5h://proxy.example:1080",
        ] {
            assert!(check("HTTPS_PROXY", value).is_ok(), "{value}");
        }
        for name in ["HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"] {
            for value in [":::secret", "http://", "http://secret secret", "ftp://secret"] {
                let text = check(name, value).unwrap_err().text;
                assert!(text.starts_with(&format!("environment variable {name}: want")), "{text}");
                assert!(!text.contains("secret"), "{text}");
            }
        }
    }

    #[test]
    fn this_machine_is_recognized_by_its_names_and_addresses() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.8.9.1",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["localhost.example", "a.example", "10.0.0.1", "[fe80::1]", "alocalhost"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
