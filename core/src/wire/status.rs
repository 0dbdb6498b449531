//! Status and headers: which responses are accepted, and what each refusal means.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::wire::headers::named;
use crate::wire::passed_on;

/// Who sends the response. This decides what a refusal means and what an error may quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answerer {
    TokenEndpoint,
    Api,
}

/// Accepts status 200 with a JSON content type or with none. This is an assumption, because the
/// reference shows neither.
pub(crate) fn check_head(answerer: Answerer, status: u16, headers: &[(&str, &str)]) -> Result<()> {
    if let (Answerer::Api, 400.., Some(error)) = (answerer, status, passed_on::read(headers)) {
        return Err(error);
    }
    let (code, message) = match status {
        200 => return check_success(headers).map_err(|error| error.with_status(status)),
        400 | 401 | 403 if answerer == Answerer::TokenEndpoint => (
            Code::TokenRefused,
            match passed_on::read(headers) {
                Some(_) => {
                    "a server for web apps answered instead of the token endpoint: does the address, or the proxy, lead back to \
                     your own server?"
                }
                None => "the token endpoint refused the client id, secret or audience",
            },
        ),
        300..=399 => (
            Code::Redirected,
            "the service redirects, and tallyfold follows no redirect: it would carry a secret \
             elsewhere; pass the final address",
        ),
        403 => (
            Code::Forbidden,
            "the token is valid but does not allow this; ask the operator for access",
        ),
        429 => (Code::RateLimited, "the service limits the rate of requests"),
        500..=599 => (Code::ServerError, "the service failed"),
        _ => (Code::UnexpectedStatus, "want status 200"),
    };
    Err(Error::new(code, message).with_status(status))
}

fn check_success(headers: &[(&str, &str)]) -> Result<()> {
    check_content_type(headers)?;
    check_content_encoding(headers)
}

/// Allows only one coding, because bytes that were compressed twice may grow a million times.
/// Requests accept `gzip`.
fn check_content_encoding(headers: &[(&str, &str)]) -> Result<()> {
    let mut codings =
        named(headers, "content-encoding").map(str::trim_ascii).filter(|value| !value.is_empty());
    let is_right = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => {
            ["gzip", "x-gzip", "identity"].iter().any(|right| coding.eq_ignore_ascii_case(right))
        }
        (Some(_), Some(_)) => false,
    };
    if is_right {
        return Ok(());
    }
    let message = "the response is compressed in another way than gzip, or more than once";
    Err(Error::new(Code::WrongContentEncoding, message))
}

fn check_content_type(headers: &[(&str, &str)]) -> Result<()> {
    named(headers, "content-type").try_for_each(check_media_type)
}

/// Whether the value of a content type stands for JSON.
pub(crate) fn is_json(value: &str) -> bool {
    check_media_type(value).is_ok()
}

fn check_media_type(value: &str) -> Result<()> {
    let essence = value.split(';').next().unwrap_or_default();
    match essence.trim_ascii().to_ascii_lowercase().as_str() {
        "application/json" => Ok(()),
        json if json.starts_with("application/") && json.ends_with("+json") => Ok(()),
        "text/html" | "application/xhtml+xml" => {
            let message = "the response is a page of HTML; want JSON \
                           (is this the address of the service, or of a proxy?)";
            Err(Error::new(Code::HtmlResponse, message))
        }
        _ => {
            let message = "the response's content type is not application/json";
            Err(Error::new(Code::WrongContentType, message))
        }
    }
}
