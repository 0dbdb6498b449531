//! What follows a failure: a wait, and then the same again, or the end of the call.

use super::{Machine, State};
use crate::client::attempt::Attempt;
use crate::client::pace::{Payment, Way};
use crate::endpoint::{Endpoint, Target};
use crate::error::{Code, Error, Result};
use crate::retry::{is_passing_status, retry_after};
use crate::time::Now;
use crate::token::{Audience, Flight, Wish};

/// What a call wants a token for, and when.
#[derive(Debug, Default)]
pub(super) struct Want {
    pub(super) wish: Wish,
    /// Whether the rest of a response that was of no use may still come.
    pub(super) drains: bool,
    pub(super) wait: Wait,
    /// The failed token request that this call may send again, if nobody else has done so.
    pub(super) repeats: Option<Error>,
}

impl Want {
    /// To send again the token request of that flight, which has failed.
    pub(super) fn to_repeat(flight: Flight, error: Error, drains: bool) -> Self {
        Self {
            wish: Wish::again_after(flight),
            drains,
            repeats: Some(error),
            ..Self::default()
        }
    }
}

/// A wait on the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Wait {
    #[default]
    Over,
    /// From when the next step is asked for.
    For(u64),
    Until(u64),
}

impl Wait {
    /// How long it still is.
    pub(super) fn rest(&mut self, now: Now) -> u64 {
        if let Self::For(milliseconds) = *self {
            *self = Self::Until(now.monotonic_ms.saturating_add(milliseconds));
        }
        match self {
            Self::Until(end) => end.saturating_sub(now.monotonic_ms),
            _ => 0,
        }
    }
}

/// What came back of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: Option<u16>,
    /// Whether more of it may come, which nobody wants.
    pub(super) drains: bool,
    /// The wait that it asks for.
    pub(super) asked_ms: Option<u64>,
}

impl Answer {
    /// An answer that is over.
    pub(super) fn of(status: Option<u16>) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// An answer that is refused by its head.
    pub(super) fn by_head(status: u16, headers: &[(&str, &str)], sent_at: Now) -> Self {
        let passing = is_passing_status(status);
        Self {
            status: Some(status),
            drains: true,
            asked_ms: passing
                .then(|| retry_after(headers, sent_at.unix_ms))
                .flatten(),
        }
    }
}

impl<E: Endpoint> Machine<E> {
    /// The request to the API has failed.
    pub(super) fn failed(&mut self, answer: Answer, error: Error) -> Result<bool> {
        let floor_ms = answer.asked_ms.unwrap_or(0);
        let (code, retry) = self.shared.with(|common| {
            let pace = &mut common.pace;
            let error = pace.heed(E::Audience::API, Way::Requests, error, answer.asked_ms);
            let code = error.code();
            (
                code,
                pace.retry(error, self.retries, floor_ms, Payment::Now),
            )
        });
        let wait_ms = retry.as_ref().ok().copied();
        self.note(self.endpoint.target(), answer.status, Some(code), wait_ms);
        let want = Want {
            drains: answer.drains,
            ..Want::default()
        };
        self.wait_or_fail(retry, want)
    }

    /// Waits and then wants that, or ends.
    pub(super) fn wait_or_fail(&mut self, retry: Result<u64>, want: Want) -> Result<bool> {
        match retry {
            Err(error) => self.fail(error),
            Ok(wait_ms) => {
                self.retries += 1;
                let wait = Wait::For(wait_ms);
                self.state = State::WantsToken(Want { wait, ..want });
                Ok(false)
            }
        }
    }

    /// Goes before each request: the first one of a call earns the client some of a retry.
    pub(super) fn begin_to_send(&mut self) {
        if self.requests + self.token_requests == 0 {
            self.shared.with(|common| common.pace.earn());
        }
    }

    /// Tells the host of a request.
    pub(super) fn note(
        &mut self,
        target: Target,
        status: Option<u16>,
        code: Option<Code>,
        wait_ms: Option<u64>,
    ) {
        self.attempt = Some(Attempt {
            target,
            window: self.endpoint.window(),
            number: match target {
                Target::Token => self.token_requests,
                _ => self.requests,
            },
            status,
            code,
            wait_ms,
        });
    }
}
