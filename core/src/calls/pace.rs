//! Limits how often all calls of a client together send requests.

use super::health::Health;
use super::options::Policy;
use super::patience::Patient;
use super::retry::budget::Budget;
use super::retry::jitter::Jitter;
use super::retry::not_before::NotBefore;
use super::retry::passing::is_passing;
use crate::access::api::Api;
use crate::code::Code;
use crate::endpoint::Target;
use crate::error::{Error, Result};
use crate::time::now::Now;
use crate::wire::retry_after::MOST_SECONDS;

/// For this long after the service has refused the client's credentials or tokens, calls to the same endpoint that fail fast send
/// nothing: a web app may request a hundred windows at once.
const REFUSAL_MS: u64 = 10_000;

/// Where a request for an API goes: the API and its token endpoint may be different services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// The API's token endpoint.
    TokenEndpoint,
    /// The API itself.
    Api,
}

/// When a retry is paid from the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    /// Now: this call will send again.
    Now,
    /// Later: one of several calls will send again for all of them, and pays then.
    BySender,
    /// The same, after the failure of a request that another call had sent.
    ByOther,
}

/// The retry budget, the waits that the service has requested, its latest responses, and the
/// random numbers of a client.
#[derive(Debug)]
pub(super) struct Pace {
    policy: Policy,
    budget: Budget,
    jitter: Jitter,
    /// For each API and destination.
    not_before: [[NotBefore; 2]; 2],
    /// For each API and destination.
    health: [[Health; 2]; 2],
    /// How many requests have failed temporarily, wherever they went.
    failures: u64,
    /// For each endpoint, the error of the last call whose credentials or tokens were refused for good, and when its last request
    /// was sent.
    refusals: [Option<(Now, Error)>; Target::ALL.len()],
}

impl Pace {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            budget: Budget::default(),
            jitter: Jitter::new(policy.seed),
            not_before: Default::default(),
            health: Default::default(),
            failures: 0,
            refusals: Default::default(),
        }
    }

    /// Counts a call that sends its first request.
    pub(super) fn earn(&mut self, is_patient: bool) {
        self.budget.earn(is_patient);
    }

    /// How many requests have failed temporarily.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    pub(super) fn health(&mut self, api: Api, to: Destination) -> &mut Health {
        &mut self.health[api as usize][to as usize]
    }

    /// Counts a request that failed temporarily, and returns the number of the failure.
    pub(super) fn fail(&mut self, api: Api, to: Destination, error: &Error) -> u64 {
        self.failures += 1;
        let number = self.failures;
        self.health(api, to).fail(number, error);
        number
    }

    /// Records that the credentials or the tokens of a call to an endpoint were refused for good.
    pub(super) fn refuse(&mut self, target: Target, sent_at: Now, error: &Error) {
        self.refusals[target as usize] = Some((sent_at, error.clone()));
    }

    /// Records that an endpoint has accepted a token.
    pub(super) fn accept(&mut self, target: Target) {
        self.refusals[target as usize] = None;
    }

    /// The error of a refusal that was so recent that the next request to the endpoint would be refused, too.
    pub(super) fn refusal(&self, target: Target, now: Now) -> Option<Error> {
        let (sent_at, error) = self.refusals[target as usize].as_ref()?;
        (now.since(*sent_at) < REFUSAL_MS).then(|| error.clone())
    }

    /// For how many milliseconds nothing may be sent to a destination.
    pub(super) fn rest(&mut self, api: Api, to: Destination, now: Now) -> u64 {
        self.not_before(api, to).rest(now)
    }

    fn not_before(&mut self, api: Api, to: Destination) -> &mut NotBefore {
        &mut self.not_before[api as usize][to as usize]
    }

    /// Honours a `Retry-After`: nothing is sent to the destination for that long. Returns the error
    /// with that wait, or `retry_later` if the wait is longer than the caller allows. A wait that
    /// only the patience of a long range allows does not make the client's other calls wait. `wait` is
    /// the wait in milliseconds, and the latest monotonic time at which its response can have come.
    pub(super) fn heed(
        &mut self,
        api: Api,
        to: Destination,
        error: Error,
        wait: Option<(u64, u64)>,
        patient: Option<Patient>,
    ) -> Error {
        let Some((asked_ms, latest_ms)) = wait else {
            return error;
        };
        let seconds = asked_ms.div_ceil(1000).min(MOST_SECONDS);
        if asked_ms <= self.policy.longest_wait_ms {
            self.not_before(api, to).raise(asked_ms, latest_ms);
            return error.with_retry_after(seconds);
        }
        if patient.is_some_and(|patient| asked_ms <= patient.longest_wait_ms) {
            self.health(api, to).believe_down();
            return error.with_retry_after(seconds);
        }
        let message = format!("retry later, {seconds} seconds");
        let later = Error::new(Code::RetryLater, message).with_retry_after(seconds);
        match error.status() {
            Some(status) => later.with_status(status),
            None => later,
        }
    }

    /// How many milliseconds to wait before the call tries again, at least `floor_ms`; or the error
    /// that ends the call. It was retried `retries` times before.
    pub(super) fn retry(
        &mut self,
        error: Error,
        retries: u32,
        floor_ms: u64,
        payment: Payment,
    ) -> Result<u64> {
        if !is_passing(&error) || retries >= self.policy.max_retries {
            return Err(error);
        }
        let paid = match payment {
            Payment::Now => self.budget.pay(),
            Payment::BySender | Payment::ByOther => self.budget.suffices(),
        };
        if !paid {
            return Err(unpaid(error));
        }
        let longest_ms = self.policy.longest_wait_ms;
        Ok(self.jitter.wait_ms(retries + 1, longest_ms, floor_ms))
    }

    /// Whether a call that was retried this often may be retried again.
    pub(super) fn may_retry(&self, retries: u32) -> bool {
        retries < self.policy.max_retries && self.budget.suffices()
    }

    /// Whether a call that was retried this often has no retry left.
    pub(super) fn has_tried_all(&self, retries: u32) -> bool {
        retries >= self.policy.max_retries
    }

    /// How many milliseconds a long range waits before its next try, at least `floor_ms`. If it
    /// `pays` for that try, it pays from the budget, or from what its further calls will earn.
    pub(super) fn pause(&mut self, patient: Patient, floor_ms: u64, pays: bool) -> u64 {
        let paid = !pays || self.budget.borrow(patient.calls_left);
        let longest_ms = self.policy.longest_wait_ms;
        self.jitter.pause_ms(patient.tries + 1, longest_ms, paid, floor_ms)
    }

    /// Pays for sending a failed request again. If the budget is used up, returns the request's
    /// error.
    pub(super) fn pay(&mut self, error: &Error) -> Result<()> {
        if self.budget.pay() {
            return Ok(());
        }
        Err(unpaid(error.clone()))
    }
}

fn unpaid(mut error: Error) -> Error {
    error.add("; it is not tried again, as the retry budget is used up");
    error
}
