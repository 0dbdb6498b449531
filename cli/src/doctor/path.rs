//! Checks the network path to an address: name, connection, TLS, HTTP, and the server's clock.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Response;
use reqwest::header::{DATE, USER_AGENT};
use reqwest::tls::TlsInfo;
use tallyfold::sending::broken;
use tallyfold::{Code, Error, HostFailure};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::configuration::{Place, Proxies, ProxyOnPath, Server, proxy_check};
use super::diagnosis::{Check, CheckName, CheckResult};
use super::service::{Seen, failed, slow};
use super::{advice, server};
use crate::failure::Exit;
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
    /// The timeout of a check.
    pub(crate) limit: Option<Duration>,
}

/// The checks of the network path to one address.
pub(crate) struct PathChecks {
    /// The address.
    pub(crate) origin: String,
    /// The checks.
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
        PathChecks {
            origin: place.origin.clone(),
            checks: checks.collect(),
        }
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
                let found = self.limited(found(server)).await;
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

    /// Sends a request without a token to the base address itself. The service reference does not define the response,
    /// so any status passes except the statuses by which proxies and gateways report errors. The response shows that
    /// there is an HTTP server, and comes with the server's certificate and the time of its clock.
    async fn ask(&self, place: &Place, proxy: Option<&ProxyOnPath>, checks: &mut Vec<Check>) {
        let started = Instant::now();
        let agent = concat!("tallyfold-cli/", env!("CARGO_PKG_VERSION"));
        let request = self
            .http
            .to(&place.url)
            .get(&place.url)
            .header(USER_AGENT, agent)
            .send();
        let answered = match self.limit {
            None => Ok(request.await),
            Some(limit) => timeout(limit, request).await,
        };
        let took = started.elapsed();
        match answered {
            Err(_) => checks.push(slow_check(CheckName::Http).took(took)),
            Ok(Err(error)) => checks.push(unanswered(place, proxy, &error).took(took)),
            Ok(Ok(response)) => self.judge(place, &response, took, checks),
        }
    }

    fn judge(&self, place: &Place, response: &Response, took: Duration, checks: &mut Vec<Check>) {
        let now = unix_ms();
        checks.push(match place.is_tls {
            true => {
                let tls = response.extensions().get::<TlsInfo>();
                let der = tls.and_then(TlsInfo::peer_certificate);
                let replaced = server::replaced_authorities();
                let authorities = server::authorities(self.ca_file, replaced.as_deref());
                server::certificate(der, &authorities, now)
            }
            false => plain(place),
        });
        let status = response.status().as_u16();
        checks.push(Check {
            status: Some(status),
            ..http(status).took(took)
        });
        let date = response.headers().get(DATE);
        checks.push(server::clock(date.and_then(|date| date.to_str().ok()), now));
    }

    /// Limits the duration of a step. The error is `None` if the step took too long.
    async fn limited<T>(
        &self,
        work: impl Future<Output = std::io::Result<T>>,
    ) -> Result<T, Option<std::io::Error>> {
        match self.limit {
            None => work.await.map_err(Some),
            Some(limit) => match timeout(limit, work).await {
                Ok(done) => done.map_err(Some),
                Err(_) => Err(None),
            },
        }
    }
}

async fn found(server: &Server) -> std::io::Result<Vec<SocketAddr>> {
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

/// Creates the failed check of a request without a response.
fn unanswered(place: &Place, proxy: Option<&ProxyOnPath>, error: &reqwest::Error) -> Check {
    let trouble = name_of(error);
    let wants_password = chain(error).any(|link| {
        let text = link.to_string();
        text.contains("proxy authorization required")
    });
    let name = match trouble {
        "ProxyError" => CheckName::Proxy,
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
    let seen = Seen {
        trouble: Some(name),
        ..Seen::default()
    };
    (broken(HostFailure::Network, name, address), seen)
}

fn slow_check(name: CheckName) -> Check {
    failed(name, &slow(), &Seen::default())
}

/// If a check has failed, adds the checks that were skipped because of it.
fn skip_rest(checks: &mut Vec<Check>) {
    let failed = checks
        .iter()
        .find(|check| check.result == CheckResult::Failed);
    let Some(failed) = failed.map(|check| check.name) else {
        return;
    };
    let why = format!("an earlier check has failed: {}", failed.label());
    for name in [
        CheckName::Name,
        CheckName::Connection,
        CheckName::Tls,
        CheckName::Http,
        CheckName::Clock,
    ] {
        if checks.iter().all(|check| check.name != name) {
            checks.push(Check::skipped(name, why.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine() {
        for (address, outcome) in [
            ("http://localhost:1", CheckResult::Skipped),
            ("http://127.0.0.1", CheckResult::Skipped),
            ("http://[::1]:1", CheckResult::Skipped),
            ("http://10.0.0.1", CheckResult::Warning),
            ("http://localhost.example", CheckResult::Warning),
        ] {
            assert_eq!(
                plain(&Place::of(address).unwrap()).result,
                outcome,
                "{address}"
            );
        }
    }

    #[test]
    fn any_answer_shows_a_server_but_those_of_proxies() {
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
    fn a_path_ends_at_its_first_failure_and_goes_on_with_a_wrong_clock() {
        let server = Server {
            host: "none.example".to_owned(),
            port: 1,
        };
        let (failed, _) = name(&server, Ok(Vec::new()));
        let mut checks = vec![Check::ok(CheckName::Proxy, ""), failed];
        skip_rest(&mut checks);
        let results: Vec<CheckResult> = checks.iter().map(|check| check.result).collect();
        let (ok, failed, skipped) = (CheckResult::Ok, CheckResult::Failed, CheckResult::Skipped);
        assert_eq!(results, [ok, failed, skipped, skipped, skipped, skipped]);
        assert!(checks[5].seen.ends_with("has failed: name"));
        let origin = String::new();
        assert!(
            !PathChecks {
                origin: origin.clone(),
                checks
            }
            .is_open()
        );
        let checks = vec![server::clock(Some("Thu, 01 Jan 2026 00:00:00 GMT"), 0)];
        assert_eq!(checks[0].result, CheckResult::Failed);
        assert!(PathChecks { origin, checks }.is_open());
    }
}
