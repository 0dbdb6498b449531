//! The interface of every endpoint: how its request is made, and how its response is read.

use serde::Serialize;

use super::target::Target;
use crate::access::api::Audience;
use crate::access::token::AccessToken;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::secret::Secret;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::json::writer::json_of;
use crate::wire::request::Request;

/// A call of an API, with a token of that API.
pub(crate) trait Endpoint: Send + 'static {
    /// The API whose tokens it needs.
    type Audience: Audience;
    /// Makes the reader of its response.
    type Body: Body;

    fn target(&self) -> Target;
    /// The window that is asked for; `None` if the endpoint has none.
    fn window(&self) -> Option<Window>;
    /// The request with a token; without one, if the server at that address adds it.
    fn request(&self, base: &BaseAddress, token: Option<&AccessToken<Self::Audience>>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document whose shape the reference does not show. It was checked to be JSON, and is
    /// unchanged.
    Json(Vec<u8>),
    /// An access token.
    Token {
        /// The token itself, which the caller asked for.
        value: Secret,
        /// Its remaining lifetime in seconds.
        expires_in_s: u32,
    },
}

impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Table(own), Self::Table(other)) => own == other,
            (Self::Json(own), Self::Json(other)) => own == other,
            (
                Self::Token {
                    value,
                    expires_in_s,
                },
                Self::Token {
                    value: other,
                    expires_in_s: others,
                },
            ) => value.expose() == other.expose() && expires_in_s == others,
            _ => false,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Token<'a> {
    access_token: &'a str,
    expires_in: u32,
}

impl Output {
    /// The output as JSON: the document itself, or `{"accessToken", "expiresIn"}`; `None` for a table.
    #[must_use]
    pub fn into_json(self) -> Option<Vec<u8>> {
        match self {
            Self::Table(_) => None,
            Self::Json(bytes) => Some(bytes),
            Self::Token {
                value,
                expires_in_s,
            } => {
                let token = Token {
                    access_token: value.expose(),
                    expires_in: expires_in_s,
                };
                Some(json_of(&token).into_bytes())
            }
        }
    }
}
