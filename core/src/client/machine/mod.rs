//! How a call goes: perhaps a token, then the request, perhaps once more after a 401, and again
//! after what may pass.

mod again;
mod api;
mod broken;
mod tokens;

use std::sync::Arc;

use again::{Tries, Want};
use api::Sent;
use tokens::Lead;

use super::attempt::Attempt;
use super::call::{HostFailure, Step};
use super::errand::{Bearing, Errand};
use super::pace::Way;
use super::{Common, Shared};
use crate::endpoint::{Body, Output, TokenBody};
use crate::error::{Code, Error, Result};
use crate::retry::LONGEST_TIMER_MS;
use crate::secret::Secret;
use crate::time::Now;
use crate::token::{Acquired, Flight, Tokens};

/// What the host hands in.
pub(super) enum Input<'a> {
    Head {
        status: u16,
        headers: &'a [(&'a str, &'a str)],
    },
    Chunk(&'a [u8]),
    End,
    Failed {
        failure: HostFailure,
        detail: &'a str,
    },
    Token {
        value: Secret,
        lifetime: Option<&'a str>,
    },
    NoToken,
}

/// A call, whatever it is sent for.
pub(super) struct Machine {
    shared: Arc<Shared>,
    errand: Box<dyn Errand>,
    state: State,
    /// Whether a 401 has been answered with a new token already.
    replayed: bool,
    tries: Tries,
}

enum State {
    WantsToken(Want),
    /// The token endpoint was asked; once its head is good, its body is read.
    FetchesToken {
        lead: Lead,
        body: Option<Box<TokenBody>>,
    },
    /// The host was asked for a token.
    AwaitsToken {
        lead: Lead,
    },
    /// The request is on its way; once its head is good, its body is read.
    Sent {
        sent: Sent,
        body: Option<Box<dyn Body>>,
    },
    Done(Output),
    Failed(Error),
}

impl Machine {
    pub(super) fn new(shared: Arc<Shared>, errand: Box<dyn Errand>) -> Self {
        let tries = Tries::new(errand.api(), errand.target(), errand.window());
        Self {
            shared,
            errand,
            state: State::WantsToken(Want::default()),
            replayed: false,
            tries,
        }
    }

    /// Whether the last request was one to the API itself.
    pub(super) fn has_asked_api(&self) -> bool {
        self.tries.last() == Way::Requests
    }

    /// Ends the call with an error.
    fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.state = State::Failed(error.clone());
        Err(error)
    }

    /// Wants that next, or ends.
    fn go_on(&mut self, want: Result<Want>) -> Result<bool> {
        let want = want.or_else(|error| self.fail(error))?;
        self.state = State::WantsToken(want);
        Ok(false)
    }

    /// The final error of a call that has one, or else what the host should have done.
    fn out_of_order<T>(&self, message: &str) -> Result<T> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            _ => Err(Error::new(Code::OutOfOrder, message)),
        }
    }

    /// Refuses what the host should not have handed in.
    fn misplaced(&self, input: &Input<'_>) -> Result<bool> {
        self.out_of_order(match input {
            Input::Token { .. } | Input::NoToken => "no token was asked for",
            Input::Head { .. } => "there is no request whose head is awaited",
            Input::Chunk(_) | Input::End | Input::Failed { .. } => {
                "there is no response whose body is awaited"
            }
        })
    }
}

/// What a call that wants a token does next.
enum Next {
    Wait(u64),
    Block { flight: Flight, epoch: u64 },
    Fetch(Flight),
    Send(Bearing),
    ShareFailure { flight: Flight, error: Error },
    Fail(Error),
}

/// Decides it on what all calls of the client have in common. Nothing is decided before the API may
/// be asked: by then there may be another token.
fn next(errand: &dyn Errand, common: &mut Common, now: Now, want: &mut Want) -> Next {
    let Common { tokens, pace } = common;
    let api = errand.api();
    // Each floor counts from when it is first asked for, so both are, before the call's own wait is over.
    let api_rest = pace.rest(api, Way::Requests, now);
    let token_rest = pace.rest(api, Way::Tokens, now);
    let rest = want.wait.rest(now).max(api_rest);
    if rest > 0 {
        return Next::Wait(rest);
    }
    let epoch = tokens.epoch();
    let take_off = |tokens: &mut Tokens| Next::Fetch(tokens.slot(api).take_off());
    match errand.acquire(tokens, now, want.wish) {
        Acquired::Use(bearing) => Next::Send(bearing),
        Acquired::Renew(bearing) if token_rest > 0 => Next::Send(bearing),
        Acquired::Renew(_) => take_off(tokens),
        Acquired::Wait(flight) => Next::Block { flight, epoch },
        Acquired::Failed { flight, error } => Next::ShareFailure { flight, error },
        Acquired::Fetch if token_rest > 0 => Next::Wait(token_rest),
        Acquired::Fetch => match want.repeats.as_ref().map_or(Ok(()), |of| pace.pay(of)) {
            Ok(()) => take_off(tokens),
            Err(unpaid) => Next::Fail(unpaid),
        },
    }
}

impl Machine {
    /// What to do next.
    pub(super) fn step(&mut self, now: Now) -> Result<Step> {
        let want = match &mut self.state {
            State::WantsToken(want) => want,
            State::Done(_) => return Ok(Step::Done),
            _ => return self.out_of_order("hand in what the last step asked for first"),
        };
        want.drains = false;
        match self
            .shared
            .with(|common| next(&*self.errand, common, now, want))
        {
            Next::Wait(ms) => Ok(Step::Wait {
                ms: ms.min(LONGEST_TIMER_MS),
            }),
            Next::Block { flight, epoch } => {
                want.wish.go_through(flight);
                Ok(Step::Blocked { epoch })
            }
            Next::Fetch(flight) => {
                let mut wish = want.wish;
                wish.go_through(flight);
                Ok(self.fetch(Lead {
                    flight,
                    asked_at: now,
                    wish,
                }))
            }
            Next::Send(bearing) => Ok(self.send(bearing, now)),
            Next::ShareFailure { flight, error } => {
                let shared = &self.shared;
                let want = self
                    .tries
                    .after_flight_of_another(shared, flight, error, now);
                self.go_on(want)?;
                self.step(now)
            }
            Next::Fail(error) => self.fail(error),
        }
    }

    /// Takes what the host has, and gives whether a body is wanted next.
    pub(super) fn take(&mut self, input: Input<'_>) -> Result<bool> {
        match &mut self.state {
            State::FetchesToken { .. } => self.take_from_token_endpoint(input),
            State::AwaitsToken { .. } => self.take_from_host(input),
            State::Sent { .. } => self.take_from_api(input),
            State::WantsToken(want) if want.drains => match input {
                Input::Chunk(_) => Ok(false),
                Input::End | Input::Failed { .. } => {
                    want.drains = false;
                    Ok(false)
                }
                _ => self.misplaced(&input),
            },
            _ => self.misplaced(&input),
        }
    }

    pub(super) fn output(&mut self) -> Result<Output> {
        let taken = Error::new(Code::OutOfOrder, "the output has been taken");
        match std::mem::replace(&mut self.state, State::Failed(taken)) {
            State::Done(output) => Ok(output),
            state => {
                self.state = state;
                self.out_of_order("the call has no output yet; drive it until it is done")
            }
        }
    }

    pub(super) fn attempt(&mut self) -> Option<Attempt> {
        self.tries.take()
    }

    pub(super) fn close(&mut self) {
        if let State::FetchesToken { lead, .. } | State::AwaitsToken { lead } = &self.state {
            let flight = lead.flight;
            self.shared
                .with_slot(self.errand.api(), |slot| slot.abandoned(flight));
        }
        if !matches!(self.state, State::Done(_) | State::Failed(_)) {
            self.state = State::Failed(Error::new(Code::OutOfOrder, "the call was closed"));
        }
    }

    pub(super) fn state_name(&self) -> &'static str {
        match &self.state {
            State::WantsToken(_) => "wants a token",
            State::FetchesToken { .. } => "fetches a token",
            State::AwaitsToken { .. } => "awaits the host's token",
            State::Sent { .. } => "sent",
            State::Done(_) => "done",
            State::Failed(_) => "failed",
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.close();
    }
}
