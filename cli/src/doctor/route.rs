//! Where an address leads: to its host, or to a proxy.

use std::env;

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use super::diagnosis::{Check, CheckName};

/// The origin of an address, and the address for a request to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The whole base address.
    pub(crate) url: String,
    /// Host and port to connect to.
    pub(crate) server: Server,
    /// Whether it is https.
    pub(crate) is_tls: bool,
}

/// Host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// A name or a literal address without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

/// A proxy on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyOnWay {
    /// Its address without a password.
    pub(crate) shown: String,
    /// Where it listens.
    pub(crate) server: Server,
    /// Where its address is set.
    pub(crate) source: &'static str,
}

/// Which proxies are set.
pub(crate) struct Proxies {
    matcher: Matcher,
    source: &'static str,
}

impl Place {
    /// The place of a checked base address.
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
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        Some(Self {
            host: bare.unwrap_or(host).to_owned(),
            port: uri.port_u16().unwrap_or(usual_port),
        })
    }
}

impl Proxies {
    /// The proxy that is set for a cluster, or else the proxies of the environment.
    pub(crate) fn of(setting: Option<&str>) -> Self {
        match setting {
            Some(address) => Self {
                matcher: Matcher::builder().all(address).build(),
                source: "the configuration",
            },
            None => Self {
                matcher: Matcher::from_system(),
                source: "the environment",
            },
        }
    }

    /// The proxy that requests to a place go through.
    pub(crate) fn on_way_to(&self, place: &Place) -> Option<ProxyOnWay> {
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
        Some(ProxyOnWay {
            shown: format!("{scheme}://{}:{}", proxy.host()?, server.port),
            server,
            source: self.source,
        })
    }
}

/// The check that shows which proxy is used.
pub(crate) fn check(proxy: Option<&ProxyOnWay>) -> Check {
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
    use super::*;

    #[test]
    fn a_place_is_an_origin() {
        for (address, origin, host, port, is_tls) in [
            (
                "https://a.example",
                "https://a.example",
                "a.example",
                443,
                true,
            ),
            (
                "http://localhost/x/y",
                "http://localhost",
                "localhost",
                80,
                false,
            ),
            (
                "http://127.0.0.1:9",
                "http://127.0.0.1:9",
                "127.0.0.1",
                9,
                false,
            ),
            (
                "https://[::1]:8443/p",
                "https://[::1]:8443",
                "::1",
                8443,
                true,
            ),
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
            (
                "http://me:hunter2@proxy.example:3128",
                "http://proxy.example:3128",
                3128,
            ),
            ("proxy.example", "http://proxy.example:80", 80),
            (
                "socks5h://u:hunter2@proxy.example",
                "socks5h://proxy.example:1080",
                1080,
            ),
            ("https://proxy.example", "https://proxy.example:443", 443),
        ] {
            let proxy = Proxies::of(Some(setting)).on_way_to(&place).unwrap();
            assert_eq!((&*proxy.shown, proxy.server.port), (shown, port));
            let seen = check(Some(&proxy)).seen;
            assert!(
                seen.ends_with("set in the configuration") && !seen.contains("hunter2"),
                "{seen}"
            );
        }
    }
}
