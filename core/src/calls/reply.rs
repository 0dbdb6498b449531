//! The response to one request, or the failure to get one.

use super::retry::passing::is_passing_status;
use super::step::HostFailure;
use crate::time::now::Now;
use crate::wire::retry_after::retry_after;

/// The response to one request, or the failure to get one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reply {
    pub(super) status: Option<u16>,
    /// Whether more of its body, which is dropped, may still arrive.
    pub(super) drains: bool,
    /// The wait that the response requests.
    pub(super) asked_ms: Option<u64>,
    /// Whether the time limit passed without a response: not even its head came.
    pub(super) is_silence: bool,
}

impl Reply {
    /// A reply whose body is complete, or a missing reply.
    pub(super) fn of(status: Option<u16>) -> Self {
        Self { status, ..Self::default() }
    }

    /// The same after a failure of the exchange.
    pub(super) fn broken_by(self, failure: HostFailure) -> Self {
        Self { is_silence: failure == HostFailure::Timeout && self.status.is_none(), ..self }
    }

    /// A reply that is refused because of its head.
    pub(super) fn refused_by_head(status: u16, headers: &[(&str, &str)], sent_at: Now) -> Self {
        let passing = is_passing_status(status);
        Self {
            status: Some(status),
            drains: true,
            asked_ms: passing.then(|| retry_after(headers, sent_at.unix_ms)).flatten(),
            ..Self::default()
        }
    }
}
