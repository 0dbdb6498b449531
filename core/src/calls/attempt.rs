//! What a host can see of each request.

use serde::Serialize;

use crate::code::Code;
use crate::endpoint::target::Target;
use crate::time::window::Window;

/// One request of a call that has ended, successful or not. It holds no secret.
///
/// ```
/// # use tallyfold::Attempt;
/// fn log(attempt: &Attempt) -> String {
///     let target = attempt.target.as_str();
///     match (attempt.code, attempt.wait_ms) {
///         (None, _) => format!("{target}: good"),
///         (Some(code), Some(ms)) => format!("{target}: {code}, again in {ms} ms"),
///         (Some(code), None) => format!("{target}: {code}"),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// Where it was sent: an endpoint of the API, or a token endpoint.
    pub target: Target,
    /// The window that the call is about; `None` for audit logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The number of the request among those of this call to the same target, from 1.
    pub number: u32,
    /// The status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was wrong; `None` if the request succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The call tries again after this many milliseconds or later; `None` if it does not try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
}
