//! The response to a web app.

use std::fmt;

use serde::Serialize;

use crate::code::{Code, Kind};
use crate::error::Error;
use crate::spelling::Spelling;
use crate::wire::json::writer::json_of;
use crate::wire::passed_on;

/// The response to a request of a web app, with a JSON body. It may contain a token, so it never prints its body.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body: the same bytes that the service has sent, a token, or a description of the error.
    pub body: Vec<u8>,
}

#[derive(Serialize)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) kind: &'static str,
    pub(super) message: String,
}

impl Failure {
    fn new(code: Code, message: String) -> Self {
        Self { code, kind: code.kind().as_str(), message }
    }

    /// What a web app may learn about an error of the call to the service.
    pub(super) fn inside(
        code: Code,
        status: Option<u16>,
        message: String,
        reference: &str,
    ) -> Self {
        let what = match (code.kind(), status) {
            (Kind::Config, _) => return Self::new(code, message),
            (Kind::Response, _) => "the server could not use the response of the service".into(),
            (_, Some(status)) => format!("the service answered the server with status {status}"),
            (_, None) => "the server got no answer from the service".into(),
        };
        let shown = format!("{code}: {what}; the server's log contains more under {reference}");
        Self::new(code, shown)
    }
}

impl Answer {
    /// The response with a document: what the service has sent, or a token.
    #[must_use]
    pub fn good(body: Vec<u8>) -> Self {
        Self::new(200, body)
    }

    /// The response with an error. The client in the web app returns the same error.
    #[must_use]
    pub fn of_error(error: &Error) -> Self {
        let message = error.text_in(Spelling::JavaScript).to_string();
        Self::failed(error.code(), error.status(), message, error.retry_after_s())
    }

    /// The response with an error in its parts: the code, the service's status if there was one, the whole text, and
    /// after how many seconds the service allows the next request.
    #[must_use]
    pub fn failed(
        code: Code,
        status: Option<u16>,
        message: String,
        retry_after_s: Option<u64>,
    ) -> Self {
        Self::of(Failure::new(code, message), status, retry_after_s)
    }

    /// The same for an error of the call to the service. Its text stays on the server, because it may quote addresses and
    /// bodies that a web app must not see. The response contains a `reference`, under which the server logs the text. An
    /// error of the web app's own arguments keeps its text.
    #[must_use]
    pub fn failed_inside(
        code: Code,
        status: Option<u16>,
        message: String,
        retry_after_s: Option<u64>,
        reference: &str,
    ) -> Self {
        let failure = Failure::inside(code, status, message, reference);
        Self::of(failure, status, retry_after_s)
    }

    fn of(failure: Failure, status: Option<u16>, retry_after_s: Option<u64>) -> Self {
        let code = failure.code;
        let answered = match (code.kind(), status) {
            (_, Some(status @ (403 | 429))) => status,
            (Kind::Config, _) => 400,
            // A 401 would mean that the web app itself must sign in.
            _ => 502,
        };
        let mut answer = Self::new(answered, json_of(&failure).into_bytes());
        let value = passed_on::written(code, status);
        answer.headers.push((passed_on::HEADER, value));
        if let Some(seconds) = retry_after_s {
            answer.headers.push(("retry-after", seconds.to_string()));
        }
        answer
    }

    /// The response if too many requests are already waiting. The web app may repeat its request after `retry_after_s` seconds.
    #[must_use]
    pub fn busy(retry_after_s: u64) -> Self {
        let message = "the server is busy; try again later".to_owned();
        let failure = Failure::new(Code::ServerError, message);
        let mut answer = Self::new(503, json_of(&failure).into_bytes());
        answer.headers.push(("retry-after", retry_after_s.to_string()));
        answer
    }

    fn new(status: u16, body: Vec<u8>) -> Self {
        let headers = [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
        ];
        Self { status, headers: headers.map(|(name, value)| (name, value.to_owned())).into(), body }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}
