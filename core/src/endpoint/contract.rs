//! The interface of every endpoint: how its request is made, and how its response is read.

use serde::Serialize;

use crate::access::api::Audience;
use crate::access::token::AccessToken;
use crate::counts::identity::Identity;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::fold::read_options::ReadOptions;
use crate::secret::Secret;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::json::writer::json_of;
use crate::wire::request::Request;

/// The properties of a client that its queries need.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    /// How metrics responses are read.
    pub(crate) reading: ReadOptions,
    /// Whose counts it reads.
    pub(crate) identity: &'a Identity,
}

/// A query of one endpoint: it makes the request, with a token of the endpoint's API, and the reader of the response.
pub(crate) trait Endpoint: Send + 'static {
    /// The API whose tokens it needs.
    type Audience: Audience;
    /// The reader of its response.
    type Body: Body;
    /// The result of a call to it.
    type Output: CallOutput;

    /// The requested window; `None` if the endpoint has none.
    fn window(&self) -> Option<Window>;
    /// The request with a token; without a token if the server at that address adds it.
    fn request(&self, base: &BaseAddress, token: Option<&AccessToken<Self::Audience>>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}

/// The result of a call to one endpoint, or [`Output`] for a call to any of them.
pub trait CallOutput: Sized + sealed::Sealed {
    /// The result in an output; `None` if the output is of another endpoint.
    #[doc(hidden)]
    fn of(output: Output) -> Option<Self>;
}

mod sealed {
    pub trait Sealed {}
}

/// The result of a call to any endpoint. A binding must return every kind of result, so a new kind breaks its build, on
/// purpose. A program that calls one endpoint gets the type of that endpoint ([`Call::output`](crate::Call::output)).
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document.
    Json(Json),
    /// An access token.
    Token(Token),
}

/// A JSON document whose shape the reference does not show, such as a page of audit logs. The call has checked that it is
/// JSON, and has not changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(pub(super) Vec<u8>);

impl Json {
    /// The document as the service has sent it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The document as the service has sent it, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// An access token.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token itself, for the caller that requested it.
    pub value: Secret,
    /// Its remaining lifetime in seconds.
    pub expires_in_s: u32,
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.value.expose() == other.value.expose() && self.expires_in_s == other.expires_in_s
    }
}

impl Token {
    /// The token as JSON: `{"accessToken", "expiresIn"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Written<'a> {
            access_token: &'a str,
            expires_in: u32,
        }
        json_of(&Written { access_token: self.value.expose(), expires_in: self.expires_in_s })
    }
}

macro_rules! outcomes {
    ($($Own:ty: $output:pat => $own:expr),+ $(,)?) => { $(
        impl sealed::Sealed for $Own {}

        impl CallOutput for $Own {
            fn of(output: Output) -> Option<Self> {
                match output {
                    $output => Some($own),
                    _ => None,
                }
            }
        }
    )+ };
}

outcomes! {
    CountTable: Output::Table(table) => table,
    Json: Output::Json(document) => document,
    Token: Output::Token(token) => token,
}

impl sealed::Sealed for Output {}

impl CallOutput for Output {
    fn of(output: Output) -> Option<Self> {
        Some(output)
    }
}
