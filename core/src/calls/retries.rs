//! Decides what follows a failure: a wait and the same request again, or the end of the call.

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

/// The request that a call sends next, and the wait before it.
#[derive(Debug, Default)]
pub(super) struct NextRequest {
    /// The token fetches that it has taken part in.
    pub(super) history: FetchHistory,
    /// Whether the rest of an unwanted response may still arrive.
    pub(super) drains: bool,
    pub(super) delay: Delay,
    /// The error of the failed token request, which this call may send again unless another call
    /// does.
    pub(super) repeats: Option<Error>,
}

impl NextRequest {
    /// The token request of a failed fetch, to be sent again.
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
    /// It starts when the next step is asked for.
    For(u64),
    Until(u64),
}

impl Delay {
    /// How many milliseconds of it are left.
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
    /// How often the call was retried after temporary failures.
    retries: u32,
    /// How many requests it has sent to the API.
    requests: u32,
    /// How many requests it has sent to the token endpoint.
    token_requests: u32,
    /// Where the last request went; it may have been another call's token request.
    last: Destination,
    /// The request that ended last, until the host has taken it.
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

    /// Counts a request that is sent. The first request of a call adds to the client's retry
    /// budget.
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

    /// Where the last request went. If the call has failed, that is where it failed.
    pub(super) fn last(&self) -> Destination {
        self.last
    }

    /// What follows the failure of the request to the API: the next request, or the error that ends
    /// the call.
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

    /// The same for a token request that this call has sent.
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

    /// The same for a token request that another call has sent. A retry counts for this call; the
    /// client's budget is charged only if this call sends the next token request.
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

    /// Keeps the result of a request for the host.
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

    /// The result of the last request, once.
    pub(super) fn take(&mut self) -> Option<Attempt> {
        self.ended.take()
    }
}
