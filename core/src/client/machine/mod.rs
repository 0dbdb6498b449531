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
use super::options::ApiConfig;
use super::pace::Way;
use super::{Common, Shared};
use crate::endpoint::{Endpoint, Output, TokenBody};
use crate::error::{Code, Error, Result};
use crate::retry::LONGEST_TIMER_MS;
use crate::secret::Secret;
use crate::time::Now;
use crate::token::{AccessToken, Acquired, Audience, Flight};

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

/// A [`Machine`] of whatever endpoint.
pub(super) trait Drive: Send {
    fn step(&mut self, now: Now) -> Result<Step>;
    /// Takes what the host has, and gives whether a body is wanted next.
    fn take(&mut self, input: Input<'_>) -> Result<bool>;
    fn output(&mut self) -> Result<Output>;
    fn attempt(&mut self) -> Option<Attempt>;
    fn close(&mut self);
    fn state_name(&self) -> &'static str;
}

/// A call of one endpoint.
pub(super) struct Machine<E: Endpoint> {
    shared: Arc<Shared>,
    api: Arc<ApiConfig<E::Audience>>,
    endpoint: E,
    state: State<E>,
    /// Whether a 401 has been answered with a new token already.
    replayed: bool,
    tries: Tries,
}

enum State<E: Endpoint> {
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
        body: Option<E::Body>,
    },
    Done(Output),
    Failed(Error),
}

impl<E: Endpoint> Machine<E> {
    pub(super) fn new(shared: Arc<Shared>, api: Arc<ApiConfig<E::Audience>>, endpoint: E) -> Self {
        let tries = Tries::new(E::Audience::API, endpoint.target(), endpoint.window());
        Self {
            shared,
            api,
            endpoint,
            state: State::WantsToken(Want::default()),
            replayed: false,
            tries,
        }
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
enum Next<A> {
    Wait(u64),
    Block { flight: Flight, epoch: u64 },
    Fetch(Flight),
    Send(Arc<AccessToken<A>>),
    ShareFailure { flight: Flight, error: Error },
    Fail(Error),
}

/// Decides it on what all calls of the client have in common. Nothing is decided before the API may
/// be asked: by then there may be another token.
fn next<A: Audience>(common: &mut Common, now: Now, want: &mut Want) -> Next<A> {
    let Common { tokens, pace } = common;
    let api_rest = pace.rest(A::API, Way::Requests, now);
    let rest = want.wait.rest(now).max(api_rest);
    if rest > 0 {
        return Next::Wait(rest);
    }
    let rest = pace.rest(A::API, Way::Tokens, now);
    let epoch = tokens.epoch();
    let slot = A::slot(tokens);
    match slot.acquire(now, want.wish) {
        Acquired::Use(token) => Next::Send(token),
        Acquired::Renew(token) if rest > 0 => Next::Send(token),
        Acquired::Renew(_) => Next::Fetch(slot.take_off()),
        Acquired::Wait(flight) => Next::Block { flight, epoch },
        Acquired::Failed { flight, error } => Next::ShareFailure { flight, error },
        Acquired::Fetch if rest > 0 => Next::Wait(rest),
        Acquired::Fetch => match want.repeats.as_ref().map_or(Ok(()), |of| pace.pay(of)) {
            Ok(()) => Next::Fetch(slot.take_off()),
            Err(unpaid) => Next::Fail(unpaid),
        },
    }
}

impl<E: Endpoint> Drive for Machine<E> {
    fn step(&mut self, now: Now) -> Result<Step> {
        let want = match &mut self.state {
            State::WantsToken(want) => want,
            State::Done(_) => return Ok(Step::Done),
            _ => return self.out_of_order("hand in what the last step asked for first"),
        };
        want.drains = false;
        match self.shared.with(|common| next(common, now, want)) {
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
            Next::Send(token) => Ok(self.send(&token, now)),
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

    fn take(&mut self, input: Input<'_>) -> Result<bool> {
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

    fn output(&mut self) -> Result<Output> {
        let taken = Error::new(Code::OutOfOrder, "the output has been taken");
        match std::mem::replace(&mut self.state, State::Failed(taken)) {
            State::Done(output) => Ok(output),
            state => {
                self.state = state;
                self.out_of_order("the call has no output yet; drive it until it is done")
            }
        }
    }

    fn attempt(&mut self) -> Option<Attempt> {
        self.tries.take()
    }

    fn close(&mut self) {
        if let State::FetchesToken { lead, .. } | State::AwaitsToken { lead } = &self.state {
            let flight = lead.flight;
            self.shared
                .with_slot::<E::Audience, _>(|slot| slot.abandoned(flight));
        }
        if !matches!(self.state, State::Done(_) | State::Failed(_)) {
            self.state = State::Failed(Error::new(Code::OutOfOrder, "the call was closed"));
        }
    }

    fn state_name(&self) -> &'static str {
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

impl<E: Endpoint> Drop for Machine<E> {
    fn drop(&mut self) {
        self.close();
    }
}
