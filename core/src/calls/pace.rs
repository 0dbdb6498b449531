//! How often all calls of a client together may send.

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

/// Where a request in the name of an API goes. The two may be different services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// The API's token endpoint.
    TokenEndpoint,
    /// The API itself.
    Api,
}

/// What a retry has to pay, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    /// The call itself will send again.
    Now,
    /// One of many calls will send again for all of them, and pays then.
    BySender,
}

/// Budget, floors and randomness of a client.
#[derive(Debug)]
pub(super) struct Pace {
    policy: Policy,
    budget: Budget,
    jitter: Jitter,
    /// By API, and in it by destination.
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

    /// A call sends its first request.
    pub(super) fn earn(&mut self) {
        self.budget.earn();
    }

    /// How long nothing may be sent there.
    pub(super) fn rest(&mut self, api: Api, to: Destination, now: Now) -> u64 {
        self.not_before(api, to).rest(now)
    }

    fn not_before(&mut self, api: Api, to: Destination) -> &mut NotBefore {
        &mut self.not_before[api as usize][to as usize]
    }

    /// Does as the service has asked with `Retry-After`: nothing is sent there for so long; or where that
    /// is longer than the caller allows, gives the error that says so.
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

    /// How many milliseconds to wait before the call tries again, which it has done `retries` times
    /// so far; or the error that ends it. It waits no shorter than `floor_ms`.
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

    /// Pays for sending again what has failed with that error, which ends the call if it can't.
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
