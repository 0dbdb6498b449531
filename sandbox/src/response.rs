//! The responses of the sandbox.

use std::fmt;

use serde::Serialize;

/// An HTTP response, and how the caller must send it.
///
/// The headers have no `content-length`: the caller adds it when it sends the body.
#[derive(Clone, PartialEq, Eq)]
pub struct SandboxResponse {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// How long to wait before the response is sent, in milliseconds.
    pub delay_ms: u32,
    /// If this is set, declare the length of the whole body, send this many bytes of it, and close the connection.
    pub cut_at: Option<u32>,
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
    message: &'a str,
}

impl SandboxResponse {
    pub(crate) fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::bytes(status, body),
            Err(_) => Self::refusal(500, "internal_error", "the answer could not be written"),
        }
    }

    /// Assumption `error_body`: an object with a code word and a sentence.
    pub(crate) fn refusal(status: u16, error: &'static str, message: &str) -> Self {
        let body = serde_json::to_vec(&Refusal { error, message }).unwrap_or_default();
        Self::bytes(status, body)
    }

    fn bytes(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body, delay_ms: 0, cut_at: None }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// The body may hold a token, so only its length is printed.
impl fmt::Debug for SandboxResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxResponse")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("delay_ms", &self.delay_ms)
            .field("cut_at", &self.cut_at)
            .finish()
    }
}
