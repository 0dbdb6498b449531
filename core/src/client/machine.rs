//! How a call goes: perhaps a token, then the request, perhaps once more after a 401.

use std::sync::Arc;

use super::Shared;
use super::call::{HostFailure, Step};
use super::options::{ApiConfig, TokenSource};
use crate::endpoint::head::{Answerer, check_head};
use crate::endpoint::{Body, Endpoint, Output, TokenBody};
use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use crate::time::Now;
use crate::token::{AccessToken, Acquired, Audience, Flight, Grant, Lifetime, Wish};

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

/// The flight that a call leads.
#[derive(Clone, Copy)]
struct Lead {
    flight: Flight,
    asked_at: Now,
    wish: Wish,
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

    /// Sends the request with that token.
    fn send(&mut self, token: &AccessToken<E::Audience>) -> Step {
        self.state = State::Sent {
            generation: token.generation(),
            body: None,
        };
        Step::Send(self.endpoint.request(&self.api.base, token))
    }

    /// Leads a flight.
    fn fetch(&mut self, lead: Lead) -> Step {
        match &self.api.tokens {
            TokenSource::Host => {
                self.state = State::AwaitsToken { lead };
                Step::ProvideToken {
                    api: E::Audience::API,
                }
            }
            TokenSource::Endpoint(request) => {
                let request = request.clone();
                self.state = State::FetchesToken { lead, body: None };
                Step::Send(request)
            }
        }
    }

    /// Says how the flight that this call leads has ended. `drains` if more of its response may
    /// come; no more of it is wanted.
    fn land(&mut self, lead: Lead, grant: Result<Grant>, drains: bool) -> Result<bool> {
        let Lead {
            flight,
            asked_at,
            wish,
        } = lead;
        let landed = self.shared.with_slot::<E::Audience, _>(|slot| match grant {
            Ok(grant) => {
                slot.gained(flight, grant, asked_at);
                Ok(())
            }
            Err(error) => slot.failed(flight, asked_at, error),
        });
        match landed {
            Ok(()) => {
                self.state = State::WantsToken { wish, drains };
                Ok(false)
            }
            Err(error) => self.fail(error),
        }
    }

    /// The head of the token endpoint's response.
    fn take_token_head(
        &mut self,
        lead: Lead,
        status: u16,
        headers: &[(&str, &str)],
    ) -> Result<bool> {
        if let Err(error) = check_head(Answerer::TokenEndpoint, status, headers) {
            return self.land(lead, Err(error), true);
        }
        let body = Some(Box::new(TokenBody::new(self.api.default_lifetime)));
        self.state = State::FetchesToken { lead, body };
        Ok(true)
    }

    /// The head of the API's response.
    fn take_head(
        &mut self,
        generation: u64,
        status: u16,
        headers: &[(&str, &str)],
    ) -> Result<bool> {
        if status == 401 {
            return self.take_401(generation);
        }
        if status < 500 {
            self.shared
                .with_slot::<E::Audience, _>(|slot| slot.accepted());
        }
        match check_head(Answerer::Api, status, headers) {
            Ok(()) => {
                let body = Some(self.endpoint.body());
                self.state = State::Sent { generation, body };
                Ok(true)
            }
            Err(error) => self.fail(error),
        }
    }

    /// A 401 outranks the clock: that token is dropped, and a new one tried once.
    fn take_401(&mut self, generation: u64) -> Result<bool> {
        let worth_a_try = self
            .shared
            .with_slot::<E::Audience, _>(|slot| slot.reject(generation));
        if self.replayed || !worth_a_try {
            let message = "the service refused a token that had just been fetched: \
                           is the audience that of this API?";
            return self.fail(Error::new(Code::TokenRejected, message).with_status(401));
        }
        self.replayed = true;
        self.state = State::WantsToken {
            wish: Wish::default(),
            drains: true,
        };
        Ok(false)
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

/// The error of an exchange that broke in the host's hands.
fn broken(failure: HostFailure, detail: &str) -> Error {
    let (code, message) = match failure {
        HostFailure::Network => (Code::NetworkFailed, "the exchange broke"),
        HostFailure::Timeout => (Code::TimedOut, "the exchange took too long"),
    };
    if is_error_name(detail) {
        Error::new(code, format!("{message}: {detail}"))
    } else {
        Error::new(code, message)
    }
}

/// Whether a host's word for a failure is the name of an error, as hosts name them (`ECONNRESET`,
/// `UND_ERR_SOCKET`, `CERT_HAS_EXPIRED`, `ConnectError`), and so nothing that it was told in
/// confidence.
fn is_error_name(detail: &str) -> bool {
    let is_code = detail
        .bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'_'))
        && (detail.starts_with('E')
            || ["_ERR_", "CERT", "SIGNATURE"]
                .iter()
                .any(|part| detail.contains(part)));
    let is_class = detail.bytes().all(|byte| byte.is_ascii_alphabetic())
        && ["Error", "Timeout", "Exception", "Closed"]
            .iter()
            .any(|end| detail.ends_with(end));
    detail.len() <= 40 && (is_code || is_class)
}
