//! How a call goes: perhaps a token, then the request, perhaps once more after a 401.

mod api;
mod broken;
mod tokens;

use std::sync::Arc;

use broken::broken;
use tokens::Lead;

use super::Shared;
use super::call::{HostFailure, Step};
use super::options::ApiConfig;
use crate::endpoint::{Body, Endpoint, Output, TokenBody};
use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use crate::time::Now;
use crate::token::{Acquired, Audience, Grant, Lifetime, Wish};

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
}

enum State<E: Endpoint> {
    WantsToken {
        wish: Wish,
        /// Whether the rest of a response that was of no use may still come.
        drains: bool,
    },
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
        generation: u64,
        body: Option<E::Body>,
    },
    Done(Output),
    Failed(Error),
}

impl<E: Endpoint> Machine<E> {
    pub(super) fn new(shared: Arc<Shared>, api: Arc<ApiConfig<E::Audience>>, endpoint: E) -> Self {
        let state = State::WantsToken {
            wish: Wish::default(),
            drains: false,
        };
        Self {
            shared,
            api,
            endpoint,
            state,
            replayed: false,
        }
    }

    /// Ends the call with an error.
    fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.state = State::Failed(error.clone());
        Err(error)
    }

    /// The final error of a call that has one, or else what the host should have done.
    fn out_of_order<T>(&self, message: &str) -> Result<T> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            _ => Err(Error::new(Code::OutOfOrder, message)),
        }
    }
}

impl<E: Endpoint> Drive for Machine<E> {
    fn step(&mut self, now: Now) -> Result<Step> {
        let mut wish = match &self.state {
            State::WantsToken { wish, .. } => *wish,
            State::Done(_) => return Ok(Step::Done),
            _ => return self.out_of_order("hand in what the last step asked for first"),
        };
        let (acquired, epoch) = self.shared.with_tokens(|tokens| {
            let acquired = E::Audience::slot(tokens).acquire(now, wish);
            (acquired, tokens.epoch())
        });
        match acquired {
            Err(error) => self.fail(error),
            Ok(Acquired::Use(token)) => Ok(self.send(&token)),
            Ok(Acquired::Wait(flight)) => {
                wish.go_through(flight);
                self.state = State::WantsToken {
                    wish,
                    drains: false,
                };
                Ok(Step::Blocked { epoch })
            }
            Ok(Acquired::Fetch(flight)) => {
                wish.go_through(flight);
                Ok(self.fetch(Lead {
                    flight,
                    asked_at: now,
                    wish,
                }))
            }
        }
    }

    fn take(&mut self, input: Input<'_>) -> Result<bool> {
        match (&mut self.state, input) {
            (State::FetchesToken { lead, body: None }, Input::Head { status, headers }) => {
                let lead = *lead;
                self.take_token_head(lead, status, headers)
            }
            (
                State::FetchesToken {
                    lead,
                    body: Some(body),
                },
                Input::Chunk(chunk),
            ) => {
                let lead = *lead;
                match body.push(chunk) {
                    Ok(()) => Ok(true),
                    Err(error) => self.land(lead, Err(error), true),
                }
            }
            (
                State::FetchesToken {
                    lead,
                    body: Some(body),
                },
                Input::End,
            ) => {
                let (lead, grant) = (*lead, body.finish());
                self.land(lead, grant, false)
            }
            (State::FetchesToken { lead, .. }, Input::Failed { failure, detail }) => {
                let lead = *lead;
                self.land(lead, Err(broken(failure, detail)), false)
            }

            (State::AwaitsToken { lead }, Input::Token { value, lifetime }) => {
                let lead = *lead;
                let grant = lifetime
                    .map_or(Ok(self.api.default_lifetime), Lifetime::parse)
                    .and_then(|lifetime| Grant::new(value, lifetime));
                self.land(lead, grant, false)
            }
            (State::AwaitsToken { lead }, Input::NoToken) => {
                let lead = *lead;
                let message = "access_token, the host's own source of tokens, failed";
                self.land(
                    lead,
                    Err(Error::new(Code::TokenProviderFailed, message)),
                    false,
                )
            }

            (
                State::Sent {
                    generation,
                    body: None,
                },
                Input::Head { status, headers },
            ) => {
                let generation = *generation;
                self.take_head(generation, status, headers)
            }
            (
                State::Sent {
                    body: Some(body), ..
                },
                Input::Chunk(chunk),
            ) => match body.push(chunk) {
                Ok(()) => Ok(true),
                Err(error) => self.fail(error),
            },
            (
                State::Sent {
                    body: Some(body), ..
                },
                Input::End,
            ) => match body.finish() {
                Ok(output) => {
                    self.state = State::Done(output);
                    Ok(false)
                }
                Err(error) => self.fail(error),
            },
            (State::Sent { .. }, Input::Failed { failure, detail }) => {
                self.fail(broken(failure, detail))
            }

            // The rest of a response that nobody wants.
            (State::WantsToken { drains: true, .. }, Input::Chunk(_)) => Ok(false),
            (
                State::WantsToken {
                    drains: drains @ true,
                    ..
                },
                Input::End | Input::Failed { .. },
            ) => {
                *drains = false;
                Ok(false)
            }

            (_, Input::Token { .. } | Input::NoToken) => {
                self.out_of_order("no token was asked for")
            }
            (_, Input::Head { .. }) => {
                self.out_of_order("there is no request whose head is awaited")
            }
            (_, Input::Chunk(_) | Input::End | Input::Failed { .. }) => {
                self.out_of_order("there is no response whose body is awaited")
            }
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
            State::WantsToken { .. } => "wants a token",
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
