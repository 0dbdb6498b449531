//! Limits how often all calls of a client together send requests.

use super::options::Policy;
use super::retry::budget::Budget;
use super::retry::jitter::Jitter;
use super::retry::not_before::NotBefore;
use super::retry::passing::is_passing;
use crate::access::api::Api;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::now::Now;
use crate::wire::retry_after::MOST_SECONDS;

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
}

/// The retry budget, the waits that the service asked for, and the random numbers of a client.
#[derive(Debug)]
pub(super) struct Pace {
    policy: Policy,
    budget: Budget,
    jitter: Jitter,
    /// For each API and destination.
    not_before: [[NotBefore; 2]; 2],
}

impl Pace {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            budget: Budget::default(),
            jitter: Jitter::new(policy.seed),
            not_before: Default::default(),
        }
    }

    /// Counts a call that sends its first request.
    pub(super) fn earn(&mut self) {
        self.budget.earn();
    }

    /// How long nothing may be sent to a destination.
    pub(super) fn rest(&mut self, api: Api, to: Destination, now: Now) -> u64 {
        self.not_before(api, to).rest(now)
    }

    fn not_before(&mut self, api: Api, to: Destination) -> &mut NotBefore {
        &mut self.not_before[api as usize][to as usize]
    }

    /// Obeys a `Retry-After`: nothing is sent to the destination for that long. Gives the error
    /// with that wait, or `retry_later` if the wait is longer than the caller allows.
    pub(super) fn heed(
        &mut self,
        api: Api,
        to: Destination,
        error: Error,
        asked_ms: Option<u64>,
    ) -> Error {
        let Some(asked_ms) = asked_ms else {
            return error;
        };
        let seconds = asked_ms.div_ceil(1000).min(MOST_SECONDS);
        if asked_ms <= self.policy.longest_wait_ms {
            self.not_before(api, to).raise(asked_ms);
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
            Payment::BySender => self.budget.suffices(),
        };
        if !paid {
            return Err(unpaid(error));
        }
        let longest_ms = self.policy.longest_wait_ms;
        Ok(self.jitter.wait_ms(retries + 1, longest_ms, floor_ms))
    }

    /// Pays for sending a failed request again. If the budget is used up, gives the request's
    /// error.
    pub(super) fn pay(&mut self, error: &Error) -> Result<()> {
        if self.budget.pay() {
            return Ok(());
        }
        Err(unpaid(error.clone()))
    }
}

fn unpaid(error: Error) -> Error {
    error.adding("; it is not tried again, as the retry budget is used up")
}
