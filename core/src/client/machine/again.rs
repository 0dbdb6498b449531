//! What follows a failure: a wait, and then the same again, or the end of the call.

use crate::client::Shared;
use crate::client::attempt::Attempt;
use crate::client::pace::{Payment, Way};
use crate::endpoint::Target;
use crate::error::{Code, Error, Result};
use crate::retry::{is_passing_status, retry_after};
use crate::time::Now;
use crate::token::{Api, Flight, Wish};
use crate::window::Window;

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

    fn in_a_while(mut self, milliseconds: u64) -> Self {
        self.wait = Wait::For(milliseconds);
        self
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

/// What a call has tried so far.
pub(super) struct Tries {
    api: Api,
    target: Target,
    window: Option<Window>,
    /// How often the call has been tried again because of what may pass.
    retries: u32,
    /// How many requests it has sent to the API.
    requests: u32,
    /// How many it has sent to the token endpoint.
    token_requests: u32,
    /// Which way the last request went, be it another call's for a token.
    last: Way,
    /// The request that has ended last, until the host has seen it.
    ended: Option<Attempt>,
}

impl Tries {
    pub(super) fn new(api: Api, target: Target, window: Option<Window>) -> Self {
        Self {
            api,
            target,
            window,
            retries: 0,
            requests: 0,
            token_requests: 0,
            last: Way::Tokens,
            ended: None,
        }
    }

    /// Counts a request that is sent that way. The first one of a call earns the client some of a retry.
    pub(super) fn send(&mut self, shared: &Shared, way: Way) {
        if self.requests + self.token_requests == 0 {
            shared.with(|common| common.pace.earn());
        }
        self.last = way;
        *match way {
            Way::Tokens => &mut self.token_requests,
            Way::Requests => &mut self.requests,
        } += 1;
    }

    /// Which way the last request went: where the call has failed, whose failure it is.
    pub(super) fn last(&self) -> Way {
        self.last
    }

    /// What follows the failure of the request to the API, or the end.
    pub(super) fn after(&mut self, shared: &Shared, answer: Answer, error: Error) -> Result<Want> {
        let error = self.heed(shared, Way::Requests, answer, error);
        let code = error.code();
        let floor_ms = answer.asked_ms.unwrap_or(0);
        let wait_ms = self.wait(shared, error, floor_ms, Payment::Now);
        self.note(
            Way::Requests,
            answer.status,
            Some(code),
            wait_ms.as_ref().ok(),
        );
        let want = Want {
            drains: answer.drains,
            ..Want::default()
        };
        wait_ms.map(|ms| want.in_a_while(ms))
    }

    /// What follows the failure of a flight for a token that this call has led, or the end.
    pub(super) fn after_flight(
        &mut self,
        shared: &Shared,
        flight: Flight,
        answer: Answer,
        error: Error,
    ) -> Result<Want> {
        let code = error.code();
        let floor_ms = answer.asked_ms.unwrap_or(0);
        let wait_ms = self.wait(shared, error.clone(), floor_ms, Payment::BySender);
        self.note(
            Way::Tokens,
            answer.status,
            Some(code),
            wait_ms.as_ref().ok(),
        );
        let want = Want::to_repeat(flight, error, answer.drains);
        wait_ms.map(|ms| want.in_a_while(ms))
    }

    /// What follows the failure of a flight that another call has led. To try again costs this call a
    /// retry, and nothing of the client's budget unless it is the one that sends.
    pub(super) fn after_flight_of_another(
        &mut self,
        shared: &Shared,
        flight: Flight,
        error: Error,
        now: Now,
    ) -> Result<Want> {
        self.last = Way::Tokens;
        let floor_ms = shared.with(|common| common.pace.rest(self.api, Way::Tokens, now));
        let wait_ms = self.wait(shared, error.clone(), floor_ms, Payment::BySender)?;
        Ok(Want::to_repeat(flight, error, false).in_a_while(wait_ms))
    }

    /// Does as the answer says, for all calls of the client.
    pub(super) fn heed(&self, shared: &Shared, way: Way, answer: Answer, error: Error) -> Error {
        shared.with(|common| common.pace.heed(self.api, way, error, answer.asked_ms))
    }

    fn wait(
        &mut self,
        shared: &Shared,
        error: Error,
        floor_ms: u64,
        payment: Payment,
    ) -> Result<u64> {
        let retries = self.retries;
        let wait_ms = shared.with(|common| common.pace.retry(error, retries, floor_ms, payment))?;
        self.retries += 1;
        Ok(wait_ms)
    }

    /// Keeps what came of a request, for the host to see.
    pub(super) fn note(
        &mut self,
        way: Way,
        status: Option<u16>,
        code: Option<Code>,
        wait_ms: Option<&u64>,
    ) {
        let (target, number) = match way {
            Way::Tokens => (Target::Token, self.token_requests),
            Way::Requests => (self.target, self.requests),
        };
        self.ended = Some(Attempt {
            target,
            window: self.window,
            number,
            status,
            code,
            wait_ms: wait_ms.copied(),
        });
    }

    /// What came of the last request, once.
    pub(super) fn take(&mut self) -> Option<Attempt> {
        self.ended.take()
    }
}
