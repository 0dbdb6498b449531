//! Requests as values, and the base addresses they are sent to.

use std::fmt;

use http::Uri;

use crate::error::{Code, Error, Result};
use crate::secret::Secret;

/// One HTTP request, complete and byte-exact; the host adds nothing but what its stack must.
///
/// Its `Debug` shows the method, the address and the names of the headers, and no value: a header
/// may hold a token and the body a client secret.
#[derive(Clone)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(&'static str, Secret)>,
    body: Option<Secret>,
}

#[derive(Clone, Copy)]
enum Method {
    Get,
    Post,
}

impl Request {
    /// A request without a body.
    pub(crate) fn get(url: String) -> Self {
        Self {
            method: Method::Get,
            url,
            headers: Vec::new(),
            body: None,
        }
    }

    /// A request with a JSON body.
    pub(crate) fn post_json(url: String, body: Secret) -> Self {
        let headers = vec![("content-type", Secret::from("application/json".to_owned()))];
        Self {
            method: Method::Post,
            url,
            headers,
            body: Some(body),
        }
    }

    /// The same request in the name of a bearer token (service reference 5).
    pub(crate) fn bearing(mut self, token: &Secret) -> Self {
        let value = Secret::from(format!("Bearer {}", token.expose()));
        self.headers.insert(0, ("authorization", value));
        self
    }

    /// `GET` or `POST`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.method {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }

    /// The absolute address. It never holds a secret.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The headers, with names in lower case, in the order to send them.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers
            .iter()
            .map(|(name, value)| (*name, value.expose()))
    }

    /// The body's bytes; `None` for a request that has no body.
    #[must_use]
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_ref().map(|body| body.expose().as_bytes())
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("url", &self.url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// A checked base address: `{base_url}`, `{auth_url}` or `{cluster_endpoint}` of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseAddress(String);

impl BaseAddress {
    /// Checks an address and cuts its trailing slashes. Plain http is for this machine only,
    /// unless `allow_http`. `argument` names the argument in errors.
    pub(crate) fn parse(argument: &'static str, text: &str, allow_http: bool) -> Result<Self> {
        let invalid = |message: &str| Error::argument(argument, Code::InvalidBaseAddress, message);
        // `Uri` drops a fragment without a word, so it is looked for first.
        if text.contains(['?', '#']) {
            return Err(invalid("a base address has no query and no fragment"));
        }
        let uri: Uri = text
            .parse()
            .map_err(|_| invalid("want an absolute address such as https://host.example/prefix"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(invalid(
                "want an absolute address such as https://host.example/prefix",
            ));
        };
        if authority.as_str().contains('@') {
            return Err(invalid(
                "a base address holds no user info; pass credentials on their own",
            ));
        }
        let after_host = authority
            .as_str()
            .strip_prefix(authority.host())
            .unwrap_or_default();
        if authority.host().is_empty() || !(after_host.is_empty() || authority.port_u16().is_some())
        {
            return Err(invalid("want a host, and a port from 0 to 65535 if any"));
        }
        match scheme {
            "https" => {}
            "http" if allow_http || is_this_machine(authority.host()) => {}
            "http" => {
                let message = "plain http would show tokens to the network; use https \
                               (http is for localhost, 127.0.0.1 and [::1])";
                return Err(Error::argument(
                    argument,
                    Code::InsecureBaseAddress,
                    message,
                ));
            }
            _ => return Err(invalid("want https")),
        }
        if uri.path().split('/').any(is_dot_segment) {
            return Err(invalid("a base address has no . or .. in its path"));
        }
        let path = uri.path().trim_end_matches('/');
        let authority = authority.as_str().to_ascii_lowercase();
        Ok(Self(format!("{scheme}://{authority}{path}")))
    }

    /// The address of an endpoint, whose path starts with a slash.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// The exact hosts that a request can reach without leaving the machine.
fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || matches!(host, "127.0.0.1" | "[::1]")
}

/// `.` and `..`, which a host would resolve before sending, also when they are percent-encoded.
fn is_dot_segment(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}
