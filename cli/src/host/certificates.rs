//! The certificates that a connection trusts beyond those of the system: the file of `--ca-file`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::failure::{Failure, Result};

/// How much of a file of certificates is read. All certificates that a system trusts are about a quarter of a megabyte.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// TLS that trusts the system's authorities and the certificates of a file.
///
/// # Errors
/// For a file that can't be read, and for one without a certificate that is valid today.
pub(crate) fn trusting(path: &Path) -> Result<ClientConfig> {
    let own = valid(path)?;
    let refused =
        |error: Error| Failure::usage(format!("{}: can't be used: {error}", path.display()));
    let provider = Arc::new(default_provider());
    let verifier = Certificates {
        authorities: Verifier::new_with_extra_roots(own.clone(), Arc::clone(&provider))
            .map_err(refused)?,
        own,
    };
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(refused)?.dangerous();
    let mut config = config
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates of a file that have not expired. TLS itself does not check when an authority expires.
fn valid(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wanted = |what: &str| Failure::usage(format!("{}: want {what}", path.display()));
    let as_failure = |error: io::Error| Failure::file("read", path, &error);
    if !std::fs::metadata(path).map_err(as_failure)?.is_file() {
        return Err(wanted("a file of certificates"));
    }
    let mut pem = Vec::new();
    let file = File::open(path).map_err(as_failure)?;
    file.take(MOST_BYTES)
        .read_to_end(&mut pem)
        .map_err(as_failure)?;
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

/// Accepts what the system accepts, and a server whose certificate is itself in the file: a self-signed certificate has
/// no other authority, and `openssl req -x509` marks it as an authority, which no server's certificate may be elsewhere.
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
    ) -> std::result::Result<ServerCertVerified, Error> {
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
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether a certificate is valid at that time.
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
