//! Requests as values.

use std::fmt;
use std::sync::Arc;

use super::headers::Headers;
use crate::secret::Secret;

/// One complete HTTP request. The host sends it unchanged and adds only the headers that its HTTP
/// stack requires.
///
/// Its `Debug` shows the method, the address and the names of the headers, but neither values nor
/// the body, because they may contain a token or a client secret.
#[derive(Clone)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(&'static str, Secret)>,
    /// The headers that the caller adds to every request.
    others: Arc<Headers>,
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
            headers: vec![header("accept-encoding", "gzip")],
            others: Arc::default(),
            body: None,
        }
    }

    /// A request with a JSON body.
    pub(crate) fn post_json(url: String, body: Secret) -> Self {
        let content_type = header("content-type", "application/json");
        let headers = vec![content_type, header("accept-encoding", "gzip")];
        Self { method: Method::Post, url, headers, others: Arc::default(), body: Some(body) }
    }

    /// The same request with a bearer token (service reference 5).
    pub(crate) fn bearing(mut self, token: Option<&Secret>) -> Self {
        if let Some(token) = token {
            let value = Secret::from(format!("Bearer {}", token.expose()));
            self.headers.insert(0, ("authorization", value));
        }
        self
    }

    /// The same request, also with these headers.
    pub(crate) fn with(mut self, headers: &Arc<Headers>) -> Self {
        self.others = Arc::clone(headers);
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

    /// The headers, with names in lower case, in the order to send them. They request gzip, because
    /// it makes the JSON of a metrics response about ten times smaller. The host must decode the
    /// body, and pass it to the call in pieces of bounded size. If the headers of a response name
    /// another coding, the call refuses it.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.expose())).chain(self.others.iter())
    }

    /// The body's bytes; `None` for a request that has no body.
    #[must_use]
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_ref().map(|body| body.expose().as_bytes())
    }
}

fn header(name: &'static str, value: &str) -> (&'static str, Secret) {
    (name, Secret::from(value.to_owned()))
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("url", &self.url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}
