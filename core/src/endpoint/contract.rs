//! What every endpoint of an API is: a request with a token, and what reads its response.

use super::target::Target;
use crate::access::api::Audience;
use crate::access::token::AccessToken;
use crate::counts::table::CountTable;
use crate::error::Result;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::request::Request;

/// An API call that needs a token of one API.
pub(crate) trait Endpoint: Send + 'static {
    /// The API whose tokens it takes.
    type Audience: Audience;
    /// What reads its response.
    type Body: Body;

    fn target(&self) -> Target;
    /// The time that is asked about, where there is one.
    fn window(&self) -> Option<Window>;
    fn request(&self, base: &BaseAddress, token: &AccessToken<Self::Audience>) -> Request;
    fn body(&self) -> Self::Body;
}

/// Reads the body of a response with status 200.
pub(crate) trait Body: Send + 'static {
    fn push(&mut self, chunk: &[u8]) -> Result<()>;
    fn finish(&mut self) -> Result<Output>;
}

/// What a call gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Counts.
    Table(CountTable),
    /// A JSON document whose shape the reference does not show: checked, and as it was sent.
    Json(Vec<u8>),
}
