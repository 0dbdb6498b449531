//! Checks the network path to an address: proxy, name, connection, TLS, HTTP, and the server's clock. One response shows when
//! the server's certificate expires, and whether the server's clock agrees with this machine's. TLS has already verified that
//! the certificate is trusted.

use std::env;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Response;
use reqwest::header::{DATE, USER_AGENT};
use reqwest::tls::TlsInfo;
use tallyfold::sending::broken;
use tallyfold::text::{is_unseen, roughly};
use tallyfold::{Code, Error, HostFailure, Timestamp};
use tokio::net::{TcpStream, lookup_host};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::advice;
use super::configuration::{Place, Proxies, ProxyOnPath, Server, proxy_check};
use super::diagnosis::{Check, CheckName, CheckResult};
use super::service::{Seen, failed, slow};
use crate::failure::Exit;
use crate::host::exchange::within;
use crate::host::network::{Http, chain, is_this_machine, name_of};
use crate::host::session::unix_ms;

/// The client and the settings that the checks need.
pub(crate) struct Looker<'a> {
    /// The HTTP client.
    pub(crate) http: &'a Http,
    /// The proxies in the settings or the environment.
    pub(crate) proxies: &'a Proxies,
    /// The CA file in the settings.
    pub(crate) ca_file: Option<&'a Path>,
    /// The timeout of each step; `None` for no timeout.
    pub(crate) limit: Option<Duration>,
}

/// The checks of the network path to one address.
pub(crate) struct PathChecks {
    /// The address.
    pub(crate) origin: String,
    pub(crate) checks: Vec<Check>,
}

impl PathChecks {
    /// Returns whether requests reach the server. A wrong clock does not prevent this.
    pub(crate) fn is_open(&self) -> bool {
        let mut checks = self.checks.iter();
        checks.all(|check| check.name == CheckName::Clock || check.is_passable())
    }
}

impl Looker<'_> {
    /// Checks the network path to an address.
    pub(crate) async fn look(&self, place: &Place) -> PathChecks {
        let proxy = self.proxies.on_path_to(place);
        let mut checks = vec![proxy_check(proxy.as_ref())];
        let server = proxy.as_ref().map_or(&place.server, |proxy| &proxy.server);
        self.connect(server, &mut checks).await;
        let failed = checks.last_mut().filter(|check| !check.is_passable());
        if let (Some(proxy), Some(failed)) = (&proxy, failed) {
            failed.problem = Some(format!(
                "The proxy {} can't be reached, so nothing is known about the server behind it.",
                proxy.shown
            ));
            failed.next = Some(advice::of_trouble("ProxyError").to_owned());
        }
        if checks.iter().all(Check::is_passable) {
            self.ask(place, proxy.as_ref(), &mut checks).await;
        }
        skip_rest(&mut checks);
        let checks = checks.into_iter().map(|check| check.of(&place.origin));
        PathChecks { origin: place.origin.clone(), checks: checks.collect() }
    }

    async fn connect(&self, server: &Server, checks: &mut Vec<Check>) {
        let started = Instant::now();
        let found = match server.host.parse::<IpAddr>() {
            Ok(address) => {
                let seen = format!("{address} is an address, so no lookup is needed");
                checks.push(Check::skipped(CheckName::Name, seen));
                vec![SocketAddr::new(address, server.port)]
            }
            Err(_) => {
                let found = self.limited(resolve(server)).await;
                let (check, addresses) = name(server, found);
                checks.push(check.took(started.elapsed()));
                addresses
            }
        };
        if found.is_empty() {
            return;
        }
        let started = Instant::now();
        let connected = self.limited(TcpStream::connect(&found[..])).await;
        checks.push(connection(server, connected).took(started.elapsed()));
    }

    /// Sends a request without a token to the base address. The service reference does not define the response, so any
    /// status passes, except the statuses of a failing proxy or gateway: 407 fails, and 502 to 504 cause a warning.
    /// The response shows that an HTTP server answers, when its certificate expires, and the time of its clock.
    async fn ask(&self, place: &Place, proxy: Option<&ProxyOnPath>, checks: &mut Vec<Check>) {
        let started = Instant::now();
        let agent = concat!("tallyfold-cli/", env!("CARGO_PKG_VERSION"));
        let request = self.http.to(&place.url).get(&place.url).header(USER_AGENT, agent).send();
        let answered = within(self.limit, request).await;
        let took = started.elapsed();
        match answered {
            None => checks.push(slow_check(CheckName::Http).took(took)),
            Some(Err(error)) => checks.push(unanswered(place, proxy, &error).took(took)),
            Some(Ok(response)) => self.judge(place, &response, took, checks),
        }
    }

    fn judge(&self, place: &Place, response: &Response, took: Duration, checks: &mut Vec<Check>) {
        let now = unix_ms();
        checks.push(match place.is_tls {
            true => {
                let tls = response.extensions().get::<TlsInfo>();
                let der = tls.and_then(TlsInfo::peer_certificate);
                let replaced = replaced_authorities();
                certificate(der, &authorities(self.ca_file, replaced.as_deref()), now)
            }
            false => plain(place),
        });
        let status = response.status().as_u16();
        checks.push(Check { status: Some(status), ..http(status).took(took) });
        let date = response.headers().get(DATE);
        checks.push(clock(date.and_then(|date| date.to_str().ok()), now));
    }

    /// Runs a step, for at most the timeout. The error is `None` if the step took too long.
    async fn limited<T>(
        &self,
        work: impl Future<Output = std::io::Result<T>>,
    ) -> Result<T, Option<std::io::Error>> {
        match within(self.limit, work).await {
            Some(done) => done.map_err(Some),
            None => Err(None),
        }
    }
}

async fn resolve(server: &Server) -> std::io::Result<Vec<SocketAddr>> {
    let found = lookup_host((&*server.host, server.port)).await?;
    Ok(found.collect())
}

fn name(
    server: &Server,
    found: Result<Vec<SocketAddr>, Option<std::io::Error>>,
) -> (Check, Vec<SocketAddr>) {
    match found {
        Ok(addresses) if !addresses.is_empty() => {
            let mut shown: Vec<String> = addresses.iter().map(|at| at.ip().to_string()).collect();
            shown.dedup();
            let seen = format!("{} resolves to {}", server.host, shown.join(", "));
            (Check::ok(CheckName::Name, seen), addresses)
        }
        Err(None) => (slow_check(CheckName::Name), Vec::new()),
        Ok(_) | Err(Some(_)) => {
            let (error, seen) = network("ENOTFOUND", &server.host);
            let mut check = failed(CheckName::Name, &error, &seen);
            check.seen = format!("{} was not found", server.host);
            (check, Vec::new())
        }
    }
}

fn connection(server: &Server, connected: Result<TcpStream, Option<std::io::Error>>) -> Check {
    match connected {
        Ok(stream) => {
            let at = stream.peer_addr().map(|at| at.to_string());
            let at = at.unwrap_or_else(|_| format!("{}:{}", server.host, server.port));
            Check::ok(CheckName::Connection, format!("{at} accepts connections"))
        }
        Err(None) => slow_check(CheckName::Connection),
        Err(Some(error)) => {
            let at = format!("{}:{}", server.host, server.port);
            let (error, seen) = network(name_of(&error), &at);
            let mut check = failed(CheckName::Connection, &error, &seen);
            check.seen = format!("{at} does not accept connections");
            check
        }
    }
}

/// Creates the check of an address without TLS.
fn plain(place: &Place) -> Check {
    match is_this_machine(&place.server.host) {
        true => Check::skipped(CheckName::Tls, "not needed for plain http on this machine"),
        false => Check::warning(
            CheckName::Tls,
            "the address is plain http",
            "The client secret and the tokens cross the network in the clear.",
            "Use https, unless nobody else uses the network in between.",
        ),
    }
}

/// Judges the status of the response to a request without a token.
fn http(status: u16) -> Check {
    let name = CheckName::Http;
    match status {
        407 => Check::failed(
            name,
            Exit::Service,
            "status 407",
            "The proxy requires a name and a password.",
            advice::PROXY_CREDENTIALS,
        ),
        502..=504 => Check::warning(
            name,
            format!("status {status} to a request without a token"),
            "A proxy or gateway answers that it can't reach the server behind it.",
            advice::of_code(Code::ServerError, None),
        ),
        _ => Check::ok(
            name,
            format!("status {status} to a request without a token (any status is fine)"),
        ),
    }
}

/// Creates the failed check for a request that got no response.
fn unanswered(place: &Place, proxy: Option<&ProxyOnPath>, error: &reqwest::Error) -> Check {
    let trouble = name_of(error);
    let wants_password = chain(error).any(|link| {
        let text = link.to_string();
        text.contains("proxy authorization required")
    });
    let name = match trouble {
        "ProxyError" => CheckName::Proxy,
        trouble if trouble.starts_with("PROXY_") => CheckName::Proxy,
        "SSLError" => CheckName::Tls,
        trouble if trouble.contains("CERT") => CheckName::Tls,
        _ => CheckName::Http,
    };
    let (error, seen) = network(trouble, &place.origin);
    let mut check = failed(name, &error, &seen);
    if wants_password {
        check.next = Some(advice::PROXY_CREDENTIALS.to_owned());
    }
    if let Some(proxy) = proxy {
        check.seen = format!("{}, through {}", check.seen, proxy.shown);
    }
    check
}

/// Converts a network failure to an error of the core.
fn network(name: &'static str, address: &str) -> (Error, Seen) {
    let seen = Seen { trouble: Some(name), ..Seen::default() };
    (broken(HostFailure::Network, name, address), seen)
}

fn slow_check(name: CheckName) -> Check {
    failed(name, &slow(), &Seen::default())
}

/// If a check has failed, adds the checks that were skipped because of it.
fn skip_rest(checks: &mut Vec<Check>) {
    let failed = checks.iter().find(|check| check.result == CheckResult::Failed);
    let Some(failed) = failed.map(|check| check.name) else {
        return;
    };
    let why = format!("an earlier check has failed: {}", failed.label());
    for name in
        [CheckName::Name, CheckName::Connection, CheckName::Tls, CheckName::Http, CheckName::Clock]
    {
        if checks.iter().all(|check| check.name != name) {
            checks.push(Check::skipped(name, why.clone()));
        }
    }
}

/// A certificate that expires within this time causes a warning.
const EXPIRES_SOON_S: i64 = 14 * 86_400;

/// Checks when a trusted certificate (DER) expires. `authorities` describes the authorities that this machine trusts.
fn certificate(der: Option<&[u8]>, authorities: &str, unix_ms: i64) -> Check {
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
            format!("The certificate expires in {left}; after that, tallyfold can't connect."),
            "Ask the operator of the server whether it is renewed in time.",
        ),
    }
}

/// Describes the trusted authorities. `replaced` is the path in `SSL_CERT_FILE` or `SSL_CERT_DIR`, which replaces the
/// system's authorities.
fn authorities(ca_file: Option<&Path>, replaced: Option<&OsStr>) -> String {
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
fn replaced_authorities() -> Option<OsString> {
    let is_read = cfg!(all(unix, not(target_vendor = "apple")));
    let names = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    names.into_iter().filter(|_| is_read).find_map(env::var_os)
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
fn clock(date: Option<&str>, unix_ms: i64) -> Check {
    let name = CheckName::Clock;
    let Some(date) = date else {
        return Check::skipped(name, "not shown: the response has no Date");
    };
    let Some(server_ms) = parsed_date(date) else {
        return Check::skipped(name, "not shown: the Date of the response is invalid");
    };
    clock_ahead(unix_ms.saturating_sub(server_ms.saturating_add(HALF_SECOND_MS)))
}

/// Creates the check of a clock that is `ahead_ms` milliseconds ahead of the server's.
pub(crate) fn clock_ahead(ahead_ms: i64) -> Check {
    let name = CheckName::Clock;
    let apart = Duration::from_millis(ahead_ms.unsigned_abs());
    let seen = match apart.as_millis() {
        0..=1_500 => "agrees with the server's".to_owned(),
        _ if ahead_ms > 0 => format!("{} ahead of the server's", roughly(apart)),
        _ => format!("{} behind the server's", roughly(apart)),
    };
    match ahead_ms.unsigned_abs() {
        off if off <= CLOCK_WARNING_MS => Check::ok(name, seen),
        off if off <= CLOCK_FAILURE_MS => {
            Check::warning(name, seen, clock_problem(ahead_ms), SET_CLOCK)
        }
        _ => Check::failed(name, Exit::Usage, seen, clock_problem(ahead_ms), SET_CLOCK),
    }
}

const SET_CLOCK: &str = "Let this machine set its clock over the network (`timedatectl set-ntp true`, or chrony); if its clock is right, the server's \
     clock is wrong: inform the operator.";

/// Describes the consequences of a wrong clock.
fn clock_problem(ahead_ms: i64) -> &'static str {
    match ahead_ms > 0 {
        true => {
            "This clock is ahead: \"the last hour\" ends in the server's future. Windows settle by the server's clock, so no window \
             settles too early."
        }
        false => {
            "This clock is behind: windows stay provisional for too long, \"the last hour\" lacks the newest events, and a \
             new certificate may count as not yet valid."
        }
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

    #[test]
    fn plain_http_to_another_machine_is_a_warning() {
        for (address, outcome) in [
            ("http://localhost:1", CheckResult::Skipped),
            ("http://127.0.0.1", CheckResult::Skipped),
            ("http://[::1]:1", CheckResult::Skipped),
            ("http://10.0.0.1", CheckResult::Warning),
            ("http://localhost.example", CheckResult::Warning),
        ] {
            assert_eq!(plain(&Place::of(address).unwrap()).result, outcome, "{address}");
        }
    }

    #[test]
    fn any_status_passes_except_errors_of_proxies() {
        for (status, outcome) in [
            (200, CheckResult::Ok),
            (302, CheckResult::Ok),
            (401, CheckResult::Ok),
            (404, CheckResult::Ok),
            (407, CheckResult::Failed),
            (500, CheckResult::Ok),
            (503, CheckResult::Warning),
        ] {
            assert_eq!(http(status).result, outcome, "{status}");
        }
    }

    #[test]
    fn a_failure_closes_the_path_but_a_wrong_clock_does_not() {
        let server = Server { host: "none.example".to_owned(), port: 1 };
        let (failed, _) = name(&server, Ok(Vec::new()));
        let mut checks = vec![Check::ok(CheckName::Proxy, ""), failed];
        skip_rest(&mut checks);
        let results: Vec<CheckResult> = checks.iter().map(|check| check.result).collect();
        let (ok, failed, skipped) = (CheckResult::Ok, CheckResult::Failed, CheckResult::Skipped);
        assert_eq!(results, [ok, failed, skipped, skipped, skipped, skipped]);
        assert!(checks[5].seen.ends_with("has failed: name"));
        let origin = String::new();
        assert!(!PathChecks { origin: origin.clone(), checks }.is_open());
        let checks = vec![clock(Some("Thu, 01 Jan 2026 00:00:00 GMT"), 0)];
        assert_eq!(checks[0].result, CheckResult::Failed);
        assert!(PathChecks { origin, checks }.is_open());
    }

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
                check.seen.contains("of Our CA is valid until 2026-01-01T00:00:00Z"),
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
    fn a_certificate_that_can_not_be_parsed_passes_without_details() {
        for der in [None, Some(&b"\x30\x00"[..]), Some(&[][..])] {
            let check = certificate(der, "the system's authorities", END_MS);
            assert_eq!(check.result, CheckResult::Ok);
            assert!(check.seen.contains("trusted by the system's authorities"));
        }
    }

    #[test]
    fn control_characters_are_removed_from_the_issuer() {
        let der = certificate_of(Some("a\u{1b}[31mb"));
        let seen = certificate(Some(&der), "x", 0).seen;
        assert!(seen.contains("of a[31mb is") && !seen.contains('\u{1b}'), "{seen:?}");
        assert!(
            certificate(Some(&certificate_of(None)), "x", 0).seen.contains("unnamed authority")
        );
    }

    const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
    const SERVER_MS: i64 = 1_767_225_600_000;

    #[test]
    fn the_check_of_the_clock_depends_on_the_difference() {
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
            (-3_700_000, CheckResult::Failed, "1 h 1 min behind the server's"),
            (864_000_500, CheckResult::Failed, "10 days ahead of the server's"),
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
    fn the_check_of_the_clock_is_skipped_for_an_invalid_date() {
        for date in [None, Some(""), Some("today"), Some("Thu, 01 Jan 1960 00:00:00 GMT")] {
            let check = clock(date, SERVER_MS);
            assert_eq!(check.result, CheckResult::Skipped, "{date:?}");
            assert!(check.seen.contains("not shown"));
        }
    }

    #[test]
    fn extreme_clocks_do_not_overflow() {
        for unix_ms in [i64::MIN, i64::MAX] {
            assert_eq!(clock(Some(DATE), unix_ms).result, CheckResult::Failed);
        }
    }
}
