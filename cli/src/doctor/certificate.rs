//! How long a server's certificate is valid. Whether it is trusted was decided before, when the connection was made.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use tallyfold::Timestamp;
use tallyfold::text::is_unseen;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::check::{Check, CheckName};
use super::words::length;

/// A certificate that expires sooner than this is a warning.
const SOON_S: i64 = 14 * 86_400;

/// Judges a trusted certificate (DER); `authorities` says which ones are trusted.
pub(crate) fn check(der: Option<&[u8]>, authorities: &str, unix_ms: i64) -> Check {
    let name = CheckName::Tls;
    let parsed = der.and_then(|der| X509Certificate::from_der(der).ok());
    let Some((_, certificate)) = parsed else {
        return Check::ok(name, format!("the certificate is trusted by {authorities}"));
    };
    let issuer = common_name(certificate.issuer().iter_common_name());
    let end_s = certificate.validity().not_after.timestamp();
    let left_s = end_s.saturating_sub(unix_ms.div_euclid(1_000));
    let left = length(Duration::from_secs(left_s.max(0).unsigned_abs()));
    let end = end_s.checked_mul(1_000).and_then(Timestamp::from_unix_ms);
    let end = end.map_or_else(|| "the end of time".to_owned(), |end| end.to_string());
    let seen =
        format!("the certificate of {issuer} is valid until {end}; trusted by {authorities}");
    match left_s > SOON_S {
        true => Check::ok(name, seen),
        false => Check::warning(
            name,
            seen,
            format!("The certificate expires in {left}; then nothing can be read any more."),
            "Ask whoever runs the server whether it is renewed in time.",
        ),
    }
}

/// Which authorities are trusted. `replaced` is what `SSL_CERT_FILE` or `SSL_CERT_DIR` names in place of the system's.
pub(crate) fn authorities(ca_file: Option<&Path>, replaced: Option<&OsStr>) -> String {
    let system = match replaced {
        None => "the system's authorities".to_owned(),
        Some(path) => format!("the authorities of {}", path.display()),
    };
    match ca_file {
        None => system,
        Some(path) => format!("{system} and {}", path.display()),
    }
}

/// What the environment names in place of the system's authorities; only Unix systems other than macOS ask it.
pub(crate) fn replaced() -> Option<OsString> {
    let asks = cfg!(all(unix, not(target_vendor = "apple")));
    let names = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    names.into_iter().filter(|_| asks).find_map(env::var_os)
}

fn common_name<'a>(
    mut names: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> String {
    let name = names.next().and_then(|name| name.as_str().ok());
    // A name comes from the network: what is not printable stays out of the terminal.
    let name = name.map(|name| name.chars().filter(|c| !is_unseen(*c)).take(100).collect());
    name.unwrap_or_else(|| "an unnamed authority".to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::super::check::Outcome;
    use super::*;

    fn certificate(common_name: Option<&str>) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(2026, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    const END_MS: i64 = 1_767_225_600_000; // 2026-01-01T00:00:00Z
    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn a_certificate_that_expires_soon_is_a_warning() {
        let der = certificate(Some("Our CA"));
        for (days, outcome, problem) in [
            (60, Outcome::Ok, None),
            (15, Outcome::Ok, None),
            (14, Outcome::Warning, Some("in 14 days")),
            (1, Outcome::Warning, Some("in 24 h")),
        ] {
            let check = check(Some(&der), "x", END_MS - days * DAY_MS);
            assert_eq!(check.result, outcome, "{days}");
            assert!(
                check
                    .seen
                    .contains("of Our CA is valid until 2026-01-01T00:00:00Z"),
                "{}",
                check.seen
            );
            match (problem, &check.problem) {
                (None, None) => {}
                (Some(part), Some(text)) => assert!(text.contains(part), "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_certificate_that_can_not_be_read_is_only_trusted() {
        for der in [None, Some(&b"\x30\x00"[..]), Some(&[][..])] {
            let check = check(der, "the system's authorities", END_MS);
            assert_eq!(check.result, Outcome::Ok);
            assert!(check.seen.contains("trusted by the system's authorities"));
        }
    }

    #[test]
    fn a_name_brings_no_control_characters_to_the_terminal() {
        let der = certificate(Some("a\u{1b}[31mb"));
        let seen = check(Some(&der), "x", 0).seen;
        assert!(
            seen.contains("of a[31mb is") && !seen.contains('\u{1b}'),
            "{seen:?}"
        );
        assert!(
            check(Some(&certificate(None)), "x", 0)
                .seen
                .contains("unnamed authority")
        );
    }
}
