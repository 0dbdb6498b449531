//! What follows a failure: a wait, and then the same again, or the end of the call.

use super::attempt::Attempt;
use super::pace::{Destination, Pace, Payment};
use super::reply::Reply;
use crate::access::api::Api;
use crate::access::slot::{FetchHistory, FetchId};
use crate::code::Code;
use crate::endpoint::target::Target;
use crate::error::{Error, Result};
use crate::time::now::Now;
use crate::time::window::Window;

/// The request that a call sends next, and when.
#[derive(Debug, Default)]
pub(super) struct NextRequest {
    /// The token fetches that it has taken part in.
    pub(super) history: FetchHistory,
    /// Whether the rest of a response that was of no use may still come.
    pub(super) drains: bool,
    pub(super) delay: Delay,
    /// The error of the failed token request that this call may send again, unless another call does.
    pub(super) repeats: Option<Error>,
}

impl NextRequest {
    /// The token request of that fetch again, which has failed.
    fn fetch_again(fetch: FetchId, error: Error, drains: bool) -> Self {
        Self {
            history: FetchHistory::retrying(fetch),
            drains,
            repeats: Some(error),
            ..Self::default()
        }
    }

    fn after(mut self, milliseconds: u64) -> Self {
        self.delay = Delay::For(milliseconds);
        self
    }
}

/// A wait on the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Delay {
    #[default]
    Over,
    /// From when the next step is asked for.
    For(u64),
    Until(u64),
}

impl Delay {
    /// How many milliseconds are left of it.
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

/// What a call has tried so far.
pub(super) struct Retries {
    api: Api,
    target: Target,
    window: Option<Window>,
    /// How often the call has been tried again because of what may pass.
    retries: u32,
    /// How many requests it has sent to the API.
    requests: u32,
    /// How many it has sent to the token endpoint.
    token_requests: u32,
    /// Where the last request went, be it another call's for a token.
    last: Destination,
    /// The request that has ended last, until the host has seen it.
    ended: Option<Attempt>,
}

impl Retries {
    pub(super) fn new(api: Api, target: Target, window: Option<Window>) -> Self {
        Self {
            api,
            target,
            window,
            retries: 0,
            requests: 0,
            token_requests: 0,
            last: Destination::TokenEndpoint,
            ended: None,
        }
    }

    /// Counts a request that is sent there. The first one of a call earns the client a part of a retry.
    pub(super) fn send(&mut self, pace: &mut Pace, to: Destination) {
        if self.requests + self.token_requests == 0 {
            pace.earn();
        }
        self.last = to;
        *match to {
            Destination::TokenEndpoint => &mut self.token_requests,
            Destination::Api => &mut self.requests,
        } += 1;
    }

    /// Where the last request went: where the call has failed, whose failure it is.
    pub(super) fn last(&self) -> Destination {
        self.last
    }

    /// What follows the failure of the request to the API, or the end.
    pub(super) fn after_request(
        &mut self,
        pace: &mut Pace,
        reply: Reply,
        error: Error,
    ) -> Result<NextRequest> {
        let error = pace.heed(self.api, Destination::Api, error, reply.asked_ms);
        let code = error.code();
        let wait_ms = self.retry(pace, error, reply.asked_ms.unwrap_or(0), Payment::Now);
        self.note(
            Destination::Api,
            reply.status,
            Some(code),
            wait_ms.as_ref().ok(),
        );
        let next = NextRequest {
            drains: reply.drains,
            ..NextRequest::default()
        };
        wait_ms.map(|ms| next.after(ms))
    }

    /// What follows the failure of a token request that this call has sent, or the end.
    pub(super) fn after_own_fetch(
        &mut self,
        pace: &mut Pace,
        fetch: FetchId,
        reply: Reply,
        error: Error,
    ) -> Result<NextRequest> {
        let code = error.code();
        let floor_ms = reply.asked_ms.unwrap_or(0);
        let wait_ms = self.retry(pace, error.clone(), floor_ms, Payment::BySender);
        let to = Destination::TokenEndpoint;
        self.note(to, reply.status, Some(code), wait_ms.as_ref().ok());
        let next = NextRequest::fetch_again(fetch, error, reply.drains);
        wait_ms.map(|ms| next.after(ms))
    }

    /// What follows the failure of a token request that another call has sent. To try again costs this call a
    /// retry, and nothing of the client's budget unless it is the one that sends.
    pub(super) fn after_fetch_of_another(
        &mut self,
        pace: &mut Pace,
        fetch: FetchId,
        error: Error,
        now: Now,
    ) -> Result<NextRequest> {
        self.last = Destination::TokenEndpoint;
        let floor_ms = pace.rest(self.api, Destination::TokenEndpoint, now);
        let wait_ms = self.retry(pace, error.clone(), floor_ms, Payment::BySender)?;
        Ok(NextRequest::fetch_again(fetch, error, false).after(wait_ms))
    }

    fn retry(
        &mut self,
        pace: &mut Pace,
        error: Error,
        floor_ms: u64,
        payment: Payment,
    ) -> Result<u64> {
        let wait_ms = pace.retry(error, self.retries, floor_ms, payment)?;
        self.retries += 1;
        Ok(wait_ms)
    }

    /// Keeps what came of a request, for the host to see.
    pub(super) fn note(
        &mut self,
        to: Destination,
        status: Option<u16>,
        code: Option<Code>,
        wait_ms: Option<&u64>,
    ) {
        let (target, number) = match to {
            Destination::TokenEndpoint => (Target::Token, self.token_requests),
            Destination::Api => (self.target, self.requests),
        };
        self.ended = Some(Attempt {
            target,
            window: self.window,
            number,
            status,
            code,
            wait_ms: wait_ms.map(|ms| u32::try_from(*ms).unwrap_or(u32::MAX)),
        });
    }

    /// What came of the last request, once.
    pub(super) fn take(&mut self) -> Option<Attempt> {
        self.ended.take()
    }
}
