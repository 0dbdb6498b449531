//! What keeps the calls of a client from asking too often, together.

use crate::error::{Code, Error, Result};
use crate::retry::{Budget, Floor, Jitter, MOST_SECONDS, RetryPolicy, is_passing};
use crate::time::Now;
use crate::token::Api;

/// The two kinds of requests in the name of one API. Either may go to a service of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the API's token endpoint.
    Tokens,
    /// To the API itself.
    Requests,
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
    policy: RetryPolicy,
    budget: Budget,
    jitter: Jitter,
    /// By API, and in it by way.
    floors: [[Floor; 2]; 2],
}

impl Pace {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            budget: Budget::default(),
            jitter: Jitter::new(policy.seed),
            floors: Default::default(),
        }
    }

    /// A call sends its first request.
    pub(super) fn earn(&mut self) {
        self.budget.earn();
    }

    /// How long nothing may be sent that way.
    pub(super) fn rest(&mut self, api: Api, way: Way, now: Now) -> u64 {
        self.floor(api, way).rest(now)
    }

    fn floor(&mut self, api: Api, way: Way) -> &mut Floor {
        &mut self.floors[api as usize][way as usize]
    }

    /// Takes the service at its word: nothing is sent that way for as long as it has asked for, and
    /// where that is longer than anybody wants to wait, the error says so.
    pub(super) fn heed(
        &mut self,
        api: Api,
        way: Way,
        error: Error,
        asked_ms: Option<u64>,
    ) -> Error {
        let Some(asked_ms) = asked_ms else {
            return error;
        };
        let seconds = asked_ms.div_ceil(1000).min(MOST_SECONDS);
        if asked_ms <= self.policy.longest_wait_ms {
            self.floor(api, way).raise(asked_ms);
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
