//! Which failures may be temporary.

use crate::code::Code;
use crate::error::Error;

/// The longest wait that the timers of all hosts support: `setTimeout` fires at once for a longer
/// one.
pub(crate) const LONGEST_TIMER_MS: u64 = (1 << 31) - 1;

/// Whether the same request may succeed a little later.
pub(crate) fn is_passing(error: &Error) -> bool {
    match error.code() {
        // If HTTP does not show that a body was cut, its JSON does.
        Code::NetworkFailed => !error.is_lasting(),
        Code::TimedOut | Code::TruncatedBody => true,
        Code::RateLimited | Code::ServerError | Code::UnexpectedStatus => {
            error.status().is_some_and(is_passing_status)
        }
        _ => false,
    }
}

/// Whether a status is temporary. `Retry-After` is read only with these statuses.
pub(crate) fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}
