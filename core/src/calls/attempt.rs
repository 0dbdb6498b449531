//! What a host can see of each request.

use serde::Serialize;

use crate::code::Code;
use crate::endpoint::Target;
use crate::time::settling::ClockDifference;
use crate::time::window::Window;

/// One request of a call that has ended, successful or not. It holds no secret.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # let mut host = Host::new()?;
/// # use tallyfold::{Dimension, Window};
/// let window = Window::parse("2026-01-01T09:00:00Z", "2026-01-01T09:15:00Z")?;
/// let query = QueryOptions::new(window, &[Dimension::Integration]);
/// let mut call = host.machine.event_delivery(&query)?;
/// host.drive(&mut call)?;
/// if let Some(attempt) = call.attempt() {
///     let target = attempt.target.as_str();
///     println!("{target}, status {:?}", attempt.status);
///     match (attempt.code, attempt.wait_ms) {
///         (None, _) => println!("good"),
///         (Some(code), Some(ms)) => println!("{code}, again in {ms} ms"),
///         (Some(code), None) => println!("{code}"),
///     }
/// }
/// assert!(call.output().is_ok());
/// # Ok(())
/// # }
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
    /// The number of the request among this call's requests to the same target, from 1.
    pub number: u32,
    /// The status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was wrong; `None` if the request succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The call tries again after this many milliseconds or later; `None` if it does not try again.
    /// If it is one of a collect or follow that waits for a service that is down, these try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
    /// How the caller's wall clock differs from the `Date` of the response, if by more than a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockDifference>,
}
