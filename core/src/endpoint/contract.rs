//! The interface of every endpoint: how its request is made, and how its response is read.

use super::target::Target;
use crate::access::api::Audience;
use crate::access::token::AccessToken;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
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
    fn request(&self, base: &BaseAddress, token: &AccessToken<Self::Audience>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document whose shape the reference does not show. It was checked to be JSON, and is
    /// unchanged.
    Json(Vec<u8>),
}
