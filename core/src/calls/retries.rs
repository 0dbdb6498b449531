//! Decides what follows a failure: a wait and the same request again, or the end of the call.

use super::attempt::Attempt;
use super::delay::Delay;
use super::pace::{Destination, Pace, Payment};
use super::patience::{Patient, Setback};
use super::reply::Reply;
use super::retry::passing::is_passing;
use crate::access::api::Api;
use crate::access::slot::{FetchHistory, FetchId};
use crate::code::Code;
use crate::endpoint::Target;
use crate::error::{Error, Result};
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::settling::ServiceTime;
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
    /// How patient the long range is that the call belongs to, if it is.
    pub(super) patient: Option<Patient>,
    /// If the call fails fast: how many requests of the client had failed when its caller began to wait.
    fast_since: Option<u64>,
    /// How many requests of the client had failed when the last request was sent.
    sent_after: u64,
    /// The monotonic time at which the last request was sent.
    sent_ms: u64,
    /// Whether the API itself has answered the last request, other than with a temporary failure.
    is_answered: bool,
    /// The number of the last failure of this call.
    failed: Option<u64>,
    /// Whether the service was known to be up again, after a failure of this call, when its last
    /// request was sent.
    sent_when_up: bool,
    /// The failure that ended the call, if its long range should try again.
    setback: Option<Setback>,
    /// The error after which the request of a patient call will be sent again.
    again_after: Option<Error>,
    /// The service's clock, as the last response shows it.
    pub(super) service_time: Option<ServiceTime>,
    /// How long a request may take.
    timeout: Patience,
    /// How many requests in a row ended at the time limit without a response.
    silences: u32,
}

/// A request that gets no response at all is sent this often. Each time takes the whole time limit, and a service that
/// accepts connections without answering rarely recovers in between.
const MOST_SILENCES: u32 = 2;

impl Retries {
    pub(super) fn new(api: Api, target: Target, window: Option<Window>, timeout: Patience) -> Self {
        Self {
            api,
            target,
            window,
            retries: 0,
            requests: 0,
            token_requests: 0,
            last: Destination::TokenEndpoint,
            ended: None,
            patient: None,
            fast_since: None,
            sent_after: 0,
            sent_ms: 0,
            is_answered: false,
            failed: None,
            sent_when_up: false,
            setback: None,
            again_after: None,
            service_time: None,
            timeout,
            silences: 0,
        }
    }

    /// Counts a request that is sent. The first request of a call adds to the client's retry
    /// budget.
    pub(super) fn send(&mut self, pace: &mut Pace, to: Destination, now: Now) {
        let earns = self.patient.is_none_or(|patient| !patient.repeats);
        if earns && self.requests + self.token_requests == 0 {
            pace.earn(self.patient.is_some());
        }
        self.last = to;
        self.sent_after = pace.failures();
        self.sent_ms = now.monotonic_ms;
        self.is_answered = false;
        self.again_after = None;
        self.service_time = None;
        let health = pace.health(self.api, to);
        self.sent_when_up = self.failed.is_some_and(|failed| health.answered_since(failed));
        *match to {
            Destination::TokenEndpoint => &mut self.token_requests,
            Destination::Api => &mut self.requests,
        } += 1;
    }

    /// Where the last request went. If the call has failed, that is where it failed.
    pub(super) fn last(&self) -> Destination {
        self.last
    }

    /// How many requests of the client had failed when the last request was sent. `None` if the API
    /// has not answered that request, or has answered with a temporary failure.
    pub(super) fn answered_after(&self) -> Option<u64> {
        self.is_answered.then_some(self.sent_after)
    }

    /// The failure that ended the call, if its long range should try again.
    pub(super) fn setback(&self) -> Option<Setback> {
        self.setback
    }

    /// Records that the last request was answered, other than with a temporary failure.
    pub(super) fn answered(&mut self, pace: &mut Pace, to: Destination) {
        pace.health(self.api, to).answer(self.sent_after);
        self.is_answered = to == Destination::Api;
    }

    /// Takes the error of the last request. Returns the error with which the call continues or ends.
    pub(super) fn failed(
        &mut self,
        pace: &mut Pace,
        to: Destination,
        reply: Reply,
        mut error: Error,
    ) -> Error {
        // This client doesn't know why the server for web apps was too late.
        let is_unknown = error.is_passed_on() && error.code() == Code::TimedOut;
        self.count_silence(reply.is_silence || is_unknown);
        if reply.is_silence {
            error.add("; no response began in that time");
        }
        if is_passing(&error) {
            self.failed = Some(pace.fail(self.api, to, &error));
            // A service that requests a wait without limiting a rate is down. A silent service takes the whole time limit, so
            // no other call should wait for it.
            let is_maintained = reply.asked_ms.is_some() && error.status() != Some(429);
            if self.fast_since.is_some() && (reply.is_silence || is_maintained) {
                pace.health(self.api, to).believe_gone();
            }
        } else if !error.is_lasting() {
            self.answered(pace, to);
        }
        let timeout_ms = self.timeout.ms().unwrap_or(u64::MAX);
        let latest_ms = self.sent_ms.saturating_add(timeout_ms);
        let wait = reply.asked_ms.map(|asked_ms| (asked_ms, latest_ms));
        pace.heed(self.api, to, error, wait, self.patient)
    }

    /// What follows the failure of the request to the API: the next request, or the error that ends
    /// the call.
    pub(super) fn after_request(
        &mut self,
        pace: &mut Pace,
        reply: Reply,
        error: Error,
    ) -> Result<NextRequest> {
        let to = Destination::Api;
        let error = self.failed(pace, to, reply, error);
        let code = error.code();
        let floor_ms = reply.asked_ms.unwrap_or(0);
        let wait_ms = self.retry(pace, to, error, floor_ms, Payment::Now);
        self.note(to, reply.status, Some(code), wait_ms.as_ref().ok());
        let next = NextRequest { drains: reply.drains, ..NextRequest::default() };
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
        let to = Destination::TokenEndpoint;
        let wait_ms = self.retry(pace, to, error.clone(), floor_ms, Payment::BySender);
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
        let to = Destination::TokenEndpoint;
        self.last = to;
        // A token response is so small that a late one has probably not begun.
        self.count_silence(error.code() == Code::TimedOut);
        if is_passing(&error) {
            self.failed = Some(pace.health(self.api, to).failed());
        }
        let floor_ms = pace.rest(self.api, to, now);
        let wait_ms = self.retry(pace, to, error.clone(), floor_ms, Payment::ByOther)?;
        Ok(NextRequest::fetch_again(fetch, error, false).after(wait_ms))
    }

    fn count_silence(&mut self, is_silence: bool) {
        self.silences = if is_silence { self.silences + 1 } else { 0 };
    }

    /// Whether this call was too slow, so that a shorter window may succeed. If the service has not responded at all, that
    /// is so only if it has responded to other calls since.
    pub(super) fn is_too_slow(&self) -> bool {
        self.silences == 0 || self.sent_when_up
    }

    fn retry(
        &mut self,
        pace: &mut Pace,
        to: Destination,
        error: Error,
        floor_ms: u64,
        payment: Payment,
    ) -> Result<u64> {
        // It is useless to send another request at once.
        let is_spent = self.silences >= MOST_SILENCES || error.is_passed_on();
        if let Some(patient) = self.patient.filter(|_| is_passing(&error)) {
            let is_down = patient.tries > 0 || pace.health(self.api, to).is_down();
            let has_tried_all = is_spent || pace.has_tried_all(self.retries);
            let is_final = self.sent_when_up && has_tried_all;
            if is_down || !is_final && (is_spent || !pace.may_retry(self.retries)) {
                self.set_back(pace, patient, floor_ms, payment != Payment::ByOther);
                return Err(error);
            }
            self.again_after = Some(error.clone());
        }
        let is_fast = self.fast_since.is_some();
        if is_spent || is_fast && pace.health(self.api, to).is_down() {
            return Err(error);
        }
        let wait_ms = pace.retry(error, self.retries, floor_ms, payment)?;
        self.retries += 1;
        Ok(wait_ms)
    }

    /// If the call fails fast: the error of a service that has gone down since the caller began to wait, or that is down and
    /// has requested a wait that is not over.
    pub(super) fn gone_down(
        &self,
        pace: &mut Pace,
        to: Destination,
        rest_ms: u64,
    ) -> Option<Error> {
        let since = self.fast_since?;
        let health = pace.health(self.api, to);
        let error = health.gone()?.clone();
        match rest_ms {
            0 => Some(error).filter(|_| health.failed() > since),
            ms => Some(error.with_retry_after(ms.div_ceil(1_000))),
        }
    }

    /// The error with which the service has just refused the client's credentials or tokens, if the call fails fast.
    pub(super) fn refused(&self, pace: &Pace, now: Now) -> Option<Error> {
        self.fast_since.and_then(|_| pace.refusal(self.target, now))
    }

    /// Makes the call fail as soon as the service is down.
    pub(super) fn fail_fast(&mut self, since: u64) {
        self.fast_since = Some(since);
    }

    /// Ends the call, so that the long range tries again.
    fn set_back(&mut self, pace: &mut Pace, patient: Patient, floor_ms: u64, pays: bool) {
        self.setback = self.failed.map(|number| Setback {
            number,
            wait_ms: pace.pause(patient, floor_ms, pays),
            floor_ms,
            is_down: pace.health(self.api, self.last).is_down(),
        });
    }

    /// The error that ends the call if its retry must not be sent, although it was allowed before: the service is down by now,
    /// and the long range waits for it. The range does not pay for its next try, because a retry of a request to the API has
    /// been paid already.
    pub(super) fn gives_up(&mut self, pace: &mut Pace, now: Now) -> Option<Error> {
        let patient = self.patient.filter(|_| self.again_after.is_some())?;
        if !pace.health(self.api, self.last).is_down() {
            return None;
        }
        let floor_ms = pace.rest(self.api, self.last, now);
        self.set_back(pace, patient, floor_ms, false);
        self.again_after.take()
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
            wait_ms: wait_ms
                .copied()
                .or(self.setback.map(|setback| setback.wait_ms))
                .map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
            clock: self
                .service_time
                .and_then(|time| time.difference(self.timeout.ms().unwrap_or(u64::MAX))),
        });
    }

    /// The result of the last request, once.
    pub(super) fn take(&mut self) -> Option<Attempt> {
        self.ended.take()
    }
}
