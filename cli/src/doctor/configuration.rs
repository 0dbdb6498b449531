//! Checks whether the settings are valid for a client, and whether requests go to the server directly or through a proxy.

use std::collections::BTreeMap;
use std::env;
use std::rc::Rc;
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use tallyfold::{Machine, MachineOptions, Patience};

use super::advice;
use super::diagnosis::{Check, CheckName};
use crate::arguments::given::{Given, Origin};
use crate::config::settings::Cluster;
use crate::failure::{Failure, Result};
use crate::host::network::{Http, is_this_machine};
use crate::host::session::Session;
use crate::stderr::Stderr;

/// The timeout of each check if `timeout` is not set.
const USUAL_LIMIT: Duration = Duration::from_secs(10);

/// The client and the settings that the other checks need.
pub(crate) struct Prepared {
    /// A client that does not retry, so that each check shows the outcome of one request.
    pub(crate) session: Session,
    /// The addresses in the settings.
    pub(crate) addresses: Addresses,
    /// The timeout of each check; `None` if the setting `timeout` is `none`.
    pub(crate) limit: Option<Duration>,
}

/// The addresses of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// The address of the Control API and the Event Metrics API.
    pub(crate) cluster_endpoint: Option<String>,
    /// The address of the Orchestration API.
    pub(crate) base_url: Option<String>,
    /// The address of the authorization server; `None` without `base_url`, because only the Orchestration API needs it.
    pub(crate) auth_url: Option<String>,
}

/// Creates a client and the check of the configuration. If there is no client, the check contains the reason.
pub(crate) fn prepare(
    cluster: &Cluster,
    stderr: &Rc<Stderr>,
) -> Result<(Check, Prepared), Box<Check>> {
    let seen = settings(&cluster.client);
    match prepared(cluster, stderr) {
        Ok(prepared) => Ok((Check::ok(CheckName::Configuration, seen), prepared)),
        Err(failure) => Err(Box::new(refused(&failure, seen))),
    }
}

/// Creates the failed check of invalid settings.
fn refused(failure: &Failure, seen: String) -> Check {
    const FILE: &str = "Correct the file or setting named above.";
    let next = failure.code.map_or(FILE, |code| advice::of_code(code, None));
    let name = CheckName::Configuration;
    Check {
        code: failure.code,
        ..Check::failed(name, failure.exit, seen, failure.text.clone(), next)
    }
}

fn prepared(cluster: &Cluster, stderr: &Rc<Stderr>) -> Result<Prepared> {
    let as_failure = |error| cluster.as_failure(error);
    let mut options: MachineOptions = cluster.client.read()?;
    // Validates the options as the user has set them, because the doctor changes some below.
    Machine::new(options.clone()).map_err(as_failure)?;
    options.max_retries = 0;
    let limit = match cluster.client.get("timeout") {
        Some(_) => options.timeout_ms.ms().map(Duration::from_millis),
        None => Some(USUAL_LIMIT),
    };
    if let Some(limit) = limit {
        options.timeout_ms =
            Patience::Milliseconds(limit.as_millis().try_into().unwrap_or(u64::MAX));
    }
    let addresses = Addresses {
        cluster_endpoint: options.cluster_endpoint.clone(),
        base_url: options.base_url.clone(),
        auth_url: options.auth_url.clone().filter(|_| options.base_url.is_some()),
    };
    let http = Http::new(&cluster.network)?;
    let session = Session::new(cluster.name.clone(), options, http, Rc::clone(stderr));
    Ok(Prepared { session: session.map_err(as_failure)?, addresses, limit })
}

/// Lists the names of the settings, grouped by their source. The values may be secret, so they are not shown.
fn settings(given: &Given) -> String {
    let mut by_origin: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, setting) in given.iter() {
        let origin = match &setting.origin {
            Origin::Flag => "flags".to_owned(),
            Origin::Variable(_) => "environment".to_owned(),
            Origin::File { path, .. } => path.display().to_string(),
        };
        by_origin.entry(origin).or_default().push(name);
    }
    let secret = match given.get("client_secret") {
        Some(_) => "client_secret is set",
        None => "client_secret is not set",
    };
    let parts = by_origin.iter().map(|(origin, names)| format!("{origin}: {}; ", names.join(", ")));
    parts.chain([secret.to_owned()]).collect()
}

/// The base address of an API, and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The whole base address.
    pub(crate) url: String,
    /// Host and port to connect to.
    pub(crate) server: Server,
    /// Whether the scheme is https.
    pub(crate) is_tls: bool,
}

/// Host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// A host name, or an IP address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The proxy that requests go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyOnPath {
    /// The address of the proxy without user and password.
    pub(crate) shown: String,
    /// The host and port of the proxy.
    pub(crate) server: Server,
    /// Where the address of the proxy is set.
    pub(crate) source: &'static str,
}

/// The proxies in the settings or the environment.
pub(crate) struct Proxies {
    matcher: Matcher,
    source: &'static str,
}

impl Place {
    /// Parses a base address; returns `None` if it isn't a URL with a host.
    pub(crate) fn of(address: &str) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let is_tls = uri.scheme_str()?.eq_ignore_ascii_case("https");
        let server = Server::of(&uri, if is_tls { 443 } else { 80 })?;
        Some(Self {
            origin: format!("{}://{}", uri.scheme_str()?, uri.authority()?),
            url: address.to_owned(),
            server,
            is_tls,
        })
    }
}

impl Server {
    fn of(uri: &Uri, usual_port: u16) -> Option<Self> {
        let host = uri.host()?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Some(Self {
            host: bare.unwrap_or(host).to_owned(),
            port: uri.port_u16().unwrap_or(usual_port),
        })
    }
}

impl Proxies {
    /// Returns the proxy in the settings, or else the proxies of the environment.
    pub(crate) fn of(setting: Option<&str>) -> Self {
        match setting {
            Some(address) => Self {
                matcher: Matcher::builder().all(address).build(),
                source: "the configuration",
            },
            None => Self { matcher: Matcher::from_system(), source: "the environment" },
        }
    }

    /// Returns the proxy that requests to a place go through; `None` if they go to the server directly.
    pub(crate) fn on_path_to(&self, place: &Place) -> Option<ProxyOnPath> {
        if is_this_machine(&place.server.host) {
            return None;
        }
        let uri: Uri = place.url.parse().ok()?;
        let intercept = self.matcher.intercept(&uri)?;
        let proxy = intercept.uri();
        let scheme = proxy.scheme_str().unwrap_or("http");
        let usual_port = match scheme {
            "https" => 443,
            scheme if scheme.starts_with("socks") => 1080,
            _ => 80,
        };
        let server = Server::of(proxy, usual_port)?;
        Some(ProxyOnPath {
            shown: format!("{scheme}://{}:{}", proxy.host()?, server.port),
            server,
            source: self.source,
        })
    }
}

/// Creates the check that shows which proxy is used.
pub(crate) fn proxy_check(proxy: Option<&ProxyOnPath>) -> Check {
    let seen = match proxy {
        Some(proxy) => format!("{}, set in {}", proxy.shown, proxy.source),
        None => match env::var_os("NO_PROXY").or_else(|| env::var_os("no_proxy")) {
            Some(_) => "none (NO_PROXY is set)".to_owned(),
            None => "none".to_owned(),
        },
    };
    Check::ok(CheckName::Proxy, seen)
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::CheckResult;
    use super::*;
    use crate::arguments::given::Raw;
    use crate::failure::Exit;

    fn cluster(settings: &[(&str, &str)]) -> Cluster {
        let mut client = Given::default();
        for (name, value) in settings {
            let variable = format!("TALLYFOLD_{}", name.to_ascii_uppercase());
            client.set(*name, Raw::Text((*value).to_owned()), Origin::Variable(variable));
        }
        Cluster { name: "default".to_owned(), client, ..Cluster::default() }
    }

    const WHOLE: [(&str, &str); 4] = [
        ("client_id", "id"),
        ("client_secret", "hunter2"),
        ("cluster_endpoint", "http://127.0.0.1:1"),
        ("control_audience", "control"),
    ];

    fn checked(settings: &[(&str, &str)]) -> (Check, Option<Option<Duration>>) {
        let stderr = Rc::new(Stderr::new(true, false));
        match prepare(&cluster(settings), &stderr) {
            Ok((check, prepared)) => (check, Some(prepared.limit)),
            Err(check) => (*check, None),
        }
    }

    #[test]
    fn names_of_settings_are_shown_without_values() {
        let (check, limit) = checked(&WHOLE);
        assert_eq!(check.result, CheckResult::Ok);
        assert_eq!(
            check.seen,
            "environment: client_id, client_secret, cluster_endpoint, control_audience; client_secret is set"
        );
        assert_eq!(limit, Some(Some(USUAL_LIMIT)));
    }

    #[test]
    fn the_timeout_in_the_settings_limits_each_check() {
        for (timeout, expected) in [("2s", Some(Duration::from_secs(2))), ("none", None)] {
            let settings = [&WHOLE[..], &[("timeout", timeout)]].concat();
            assert_eq!(checked(&settings).1, Some(expected), "{timeout}");
        }
    }

    #[test]
    fn missing_settings_are_reported() {
        let (check, _) = checked(&[WHOLE[0], WHOLE[2], WHOLE[3]]);
        assert_eq!((check.result, check.exit), (CheckResult::Failed, Exit::Usage));
        assert!(check.seen.ends_with("client_secret is not set"));
        assert!(check.problem.unwrap().contains("client-secret"));
        let (check, _) = checked(&[]);
        assert!(check.next.unwrap().contains("tallyfold init"));
        let settings = [&WHOLE[..], &[("max_retries", "many")]].concat();
        let (check, _) = checked(&settings);
        assert!(check.problem.unwrap().contains("TALLYFOLD_MAX_RETRIES"));
    }

    #[test]
    fn a_missing_ca_file_fails_the_check_of_the_configuration() {
        let mut cluster = cluster(&WHOLE);
        cluster.network.ca_file = Some("no such file".into());
        let stderr = Rc::new(Stderr::new(true, false));
        let check = prepare(&cluster, &stderr).err().unwrap();
        assert_eq!(check.exit, Exit::Usage);
        assert!(check.problem.unwrap().contains("no such file"));
        assert_eq!(check.next.as_deref(), Some("Correct the file or setting named above."));
    }

    #[test]
    fn a_base_address_is_split_into_its_parts() {
        for (address, origin, host, port, is_tls) in [
            ("https://a.example", "https://a.example", "a.example", 443, true),
            ("http://localhost/x/y", "http://localhost", "localhost", 80, false),
            ("http://127.0.0.1:9", "http://127.0.0.1:9", "127.0.0.1", 9, false),
            ("https://[::1]:8443/p", "https://[::1]:8443", "::1", 8443, true),
        ] {
            let place = Place::of(address).unwrap();
            assert_eq!((&*place.origin, place.is_tls), (origin, is_tls));
            assert_eq!((&*place.server.host, place.server.port), (host, port));
        }
        assert_eq!(Place::of("a.example"), None);
    }

    #[test]
    fn a_proxy_is_shown_without_its_password() {
        let place = Place::of("https://a.example").unwrap();
        for (setting, shown, port) in [
            ("http://me:hunter2@proxy.example:3128", "http://proxy.example:3128", 3128),
            ("proxy.example", "http://proxy.example:80", 80),
            ("socks5h://u:hunter2@proxy.example", "socks5h://proxy.example:1080", 1080),
            ("https://proxy.example", "https://proxy.example:443", 443),
        ] {
            let proxy = Proxies::of(Some(setting)).on_path_to(&place).unwrap();
            assert_eq!((&*proxy.shown, proxy.server.port), (shown, port));
            let seen = proxy_check(Some(&proxy)).seen;
            assert!(
                seen.ends_with("set in the configuration") && !seen.contains("hunter2"),
                "{seen}"
            );
        }
    }
}
