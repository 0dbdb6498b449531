//! Checks the server by its first response: when its certificate expires, and whether its clock agrees with this
//! machine's. TLS has already verified that the certificate is trusted.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use tallyfold::Timestamp;
use tallyfold::text::{is_unseen, roughly};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::diagnosis::{Check, CheckName};
use crate::failure::Exit;

/// A certificate that expires sooner than this causes a warning.
const EXPIRES_SOON_S: i64 = 14 * 86_400;

/// Checks when a trusted certificate (DER) expires. `authorities` describes the authorities that this machine trusts.
pub(crate) fn certificate(der: Option<&[u8]>, authorities: &str, unix_ms: i64) -> Check {
    let name = CheckName::Tls;
    let parsed = der.and_then(|der| X509Certificate::from_der(der).ok());
    let Some((_, certificate)) = parsed else {
        return Check::ok(name, format!("the certificate is trusted by {authorities}"));
    };
    let issuer = common_name(certificate.issuer().iter_common_name());
    let end_s = certificate.validity().not_after.timestamp();
    let left_s = end_s.saturating_sub(unix_ms.div_euclid(1_000));
    let left = roughly(Duration::from_secs(left_s.max(0).unsigned_abs()));
    let end = end_s.checked_mul(1_000).and_then(Timestamp::from_unix_ms);
    let end = end.map_or_else(|| "the end of time".to_owned(), |end| end.to_string());
    let seen =
        format!("the certificate of {issuer} is valid until {end}; trusted by {authorities}");
    match left_s > EXPIRES_SOON_S {
        true => Check::ok(name, seen),
        false => Check::warning(
            name,
            seen,
            format!("The certificate expires in {left}; then nothing can be read any more."),
            "Ask whoever runs the server whether it is renewed in time.",
        ),
    }
}

/// Describes the trusted authorities. `replaced` is the path in `SSL_CERT_FILE` or `SSL_CERT_DIR`, which replaces the
/// system's authorities.
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

/// Returns the path in the environment that replaces the system's authorities. Only Unix systems other than Apple's
/// read such a variable.
pub(crate) fn replaced_authorities() -> Option<OsString> {
    let asks = cfg!(all(unix, not(target_vendor = "apple")));
    let names = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    names.into_iter().filter(|_| asks).find_map(env::var_os)
}

fn common_name<'a>(
    mut names: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> String {
    let name = names.next().and_then(|name| name.as_str().ok());
    // The name comes from the network, so characters that are not printable are removed.
    let name = name.map(|name| name.chars().filter(|c| !is_unseen(*c)).take(100).collect());
    name.unwrap_or_else(|| "an unnamed authority".to_owned())
}

const CLOCK_WARNING_MS: u64 = 30_000;
const CLOCK_FAILURE_MS: u64 = 300_000;

/// A `Date` is truncated to whole seconds, so on average it is half a second too early.
const HALF_SECOND_MS: i64 = 500;

/// Compares this machine's clock with the `Date` of a response. `unix_ms` is the local time when the head arrived.
pub(crate) fn clock(date: Option<&str>, unix_ms: i64) -> Check {
    let name = CheckName::Clock;
    let Some(date) = date else {
        return Check::skipped(name, "not shown: the response has no Date");
    };
    let Some(server_ms) = parsed_date(date) else {
        return Check::skipped(name, "not shown: the Date of the response is invalid");
    };
    judged(unix_ms.saturating_sub(server_ms.saturating_add(HALF_SECOND_MS)))
}

/// Creates the check of a clock that is `ahead_ms` milliseconds ahead of the server's.
pub(crate) fn judged(ahead_ms: i64) -> Check {
    let name = CheckName::Clock;
    let apart = Duration::from_millis(ahead_ms.unsigned_abs());
    let seen = match apart.as_millis() {
        0..=1_500 => "agrees with the server's".to_owned(),
        _ => format!("{} {} the server's", roughly(apart), side(ahead_ms)),
    };
    match ahead_ms.unsigned_abs() {
        off if off <= CLOCK_WARNING_MS => Check::ok(name, seen),
        off if off <= CLOCK_FAILURE_MS => {
            Check::warning(name, seen, clock_problem(ahead_ms), SET_CLOCK)
        }
        _ => Check::failed(name, Exit::Usage, seen, clock_problem(ahead_ms), SET_CLOCK),
    }
}

const SET_CLOCK: &str = "Let this machine set its clock over the network (`timedatectl set-ntp true`, or chrony); if its clock is right, tell the \
     operator that the server's is not.";

/// Describes the consequences of a wrong clock.
fn clock_problem(ahead_ms: i64) -> &'static str {
    match ahead_ms > 0 {
        true => {
            "This clock is ahead: windows count as settled while their counts may still change, and \"the last hour\" ends in the \
             server's future."
        }
        false => {
            "This clock is behind: windows stay provisional for too long, \"the last hour\" lacks the newest events, and a \
             new certificate may count as not yet valid."
        }
    }
}

fn side(ahead_ms: i64) -> &'static str {
    match ahead_ms > 0 {
        true => "ahead of",
        false => "behind",
    }
}

fn parsed_date(date: &str) -> Option<i64> {
    let date = httpdate::parse_http_date(date).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;
    use crate::arguments::query::DAY_MS;
    use crate::doctor::diagnosis::CheckResult;

    fn certificate_of(common_name: Option<&str>) -> Vec<u8> {
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

    #[test]
    fn a_certificate_that_expires_soon_is_a_warning() {
        let der = certificate_of(Some("Our CA"));
        for (days, outcome, problem) in [
            (60, CheckResult::Ok, None),
            (15, CheckResult::Ok, None),
            (14, CheckResult::Warning, Some("in 14 days")),
            (1, CheckResult::Warning, Some("in 24 h")),
        ] {
            let check = certificate(Some(&der), "x", END_MS - days * DAY_MS);
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
            let check = certificate(der, "the system's authorities", END_MS);
            assert_eq!(check.result, CheckResult::Ok);
            assert!(check.seen.contains("trusted by the system's authorities"));
        }
    }

    #[test]
    fn a_name_brings_no_control_characters_to_the_terminal() {
        let der = certificate_of(Some("a\u{1b}[31mb"));
        let seen = certificate(Some(&der), "x", 0).seen;
        assert!(
            seen.contains("of a[31mb is") && !seen.contains('\u{1b}'),
            "{seen:?}"
        );
        assert!(
            certificate(Some(&certificate_of(None)), "x", 0)
                .seen
                .contains("unnamed authority")
        );
    }

    const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
    const SERVER_MS: i64 = 1_767_225_600_000;

    #[test]
    fn a_clock_is_judged_by_how_far_it_is_off() {
        for (ahead_ms, outcome, seen) in [
            (0, CheckResult::Ok, "agrees with the server's"),
            (1_900, CheckResult::Ok, "agrees with the server's"),
            (-1_000, CheckResult::Ok, "agrees with the server's"),
            (10_500, CheckResult::Ok, "10 s ahead of the server's"),
            (30_500, CheckResult::Ok, "30 s ahead of the server's"),
            (30_501, CheckResult::Warning, "30 s ahead of the server's"),
            (-29_501, CheckResult::Warning, "30 s behind the server's"),
            (300_500, CheckResult::Warning, "5 min ahead of the server's"),
            (300_501, CheckResult::Failed, "5 min ahead of the server's"),
            (
                -3_700_000,
                CheckResult::Failed,
                "1 h 1 min behind the server's",
            ),
            (
                864_000_500,
                CheckResult::Failed,
                "10 days ahead of the server's",
            ),
        ] {
            let check = clock(Some(DATE), SERVER_MS + ahead_ms);
            assert_eq!((check.result, &*check.seen), (outcome, seen), "{ahead_ms}");
            assert_eq!(check.problem.is_some(), outcome > CheckResult::Ok);
            if let Some(problem) = &check.problem {
                assert_eq!(problem.contains("is ahead"), ahead_ms > 0);
            }
        }
    }

    #[test]
    fn a_date_that_is_none_says_nothing() {
        for date in [
            None,
            Some(""),
            Some("today"),
            Some("Thu, 01 Jan 1960 00:00:00 GMT"),
        ] {
            let check = clock(date, SERVER_MS);
            assert_eq!(check.result, CheckResult::Skipped, "{date:?}");
            assert!(check.seen.contains("not shown"));
        }
    }

    #[test]
    fn clocks_at_the_ends_of_time_do_not_overflow() {
        for unix_ms in [i64::MIN, i64::MAX] {
            assert_eq!(clock(Some(DATE), unix_ms).result, CheckResult::Failed);
        }
    }
}
