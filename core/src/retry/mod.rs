//! What is tried again, after how long, and how often: rules and numbers, without a client.
//!
//! The service's reference shows neither rate limits nor statuses beside 401 (7 and 8), so each
//! number here is an assumption, named in `docs/assumptions.md`.

mod after;
mod budget;
mod floor;
mod jitter;

pub(crate) use after::{MOST_SECONDS, retry_after};
pub(crate) use budget::Budget;
pub(crate) use floor::Floor;
pub(crate) use jitter::Jitter;

use crate::error::{Code, Error, Result};

/// The longest wait that every host's timer holds: `setTimeout` fires at once for more.
pub(crate) const LONGEST_TIMER_MS: u64 = (1 << 31) - 1;

/// How often a call is tried again, and how long it may wait for that.
///
/// Tried again are statuses 408, 429, 500, 502, 503 and 504, and exchanges that broke or took too
/// long, of requests to an API as of those for a token.
///
/// ```
/// let policy = tallyfold::RetryPolicy { seed: 7, ..tallyfold::RetryPolicy::default() };
/// assert_eq!((policy.max_retries, policy.longest_wait_ms), (3, 60_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often one call is tried again at most, its token requests included; 0 for never.
    pub max_retries: u32,
    /// The longest `Retry-After` that is waited for, in milliseconds: a longer one ends the call
    /// with `retry_later`. Waits that the service did not ask for keep below it, too. At most
    /// 2,147,483,647.
    pub longest_wait_ms: u64,
    /// What the random part of every wait is drawn from. The host draws it, differently for
    /// each client: two with one seed would come back at the same moments.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            longest_wait_ms: 60_000,
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// Refuses a wait that no timer holds.
    pub(crate) fn check(self) -> Result<Self> {
        if self.longest_wait_ms <= LONGEST_TIMER_MS {
            return Ok(self);
        }
        let message = "want at most 2147483647 milliseconds: no timer of JavaScript holds more";
        Err(Error::argument(
            "longest_retry_wait",
            Code::InvalidArgument,
            message,
        ))
    }
}

/// Whether the same request may fare better a little later.
pub(crate) fn is_passing(error: &Error) -> bool {
    match error.code() {
        Code::NetworkFailed | Code::TimedOut => true,
        Code::RateLimited | Code::ServerError | Code::UnexpectedStatus => {
            error.status().is_some_and(is_passing_status)
        }
        _ => false,
    }
}

/// Whether a status says so; only then `Retry-After` counts, too.
pub(crate) fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}
