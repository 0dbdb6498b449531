//! How a call goes: perhaps a token, then the request, perhaps once more after a 401.

use std::sync::Arc;

use super::Shared;
use super::call::{HostFailure, Step};
use super::options::{Api as ApiConfig, TokenSource};
use crate::endpoint::head::{Answerer, check_head};
use crate::endpoint::{Body, Endpoint, Output, TokenBody};
use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use crate::time::Now;
use crate::token::{AccessToken, Acquired, Audience, Flight, Grant, Lifetime};

/// A [`Machine`] of whatever endpoint.
pub(super) trait Drive: Send {
    fn step(&mut self, now: Now) -> Result<Step>;
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool>;
    fn chunk(&mut self, chunk: &[u8]) -> Result<()>;
    fn end(&mut self) -> Result<()>;
    fn failed(&mut self, failure: HostFailure, detail: &str) -> Result<()>;
    fn token(&mut self, token: Option<(Secret, Option<&str>)>) -> Result<()>;
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
    /// Wants a token; may have been told to wait for one.
    WantsToken {
        waited_for: Option<Flight>,
    },
    /// Has a token.
    HasToken(Arc<AccessToken<E::Audience>>),
    /// Leads a flight: the token endpoint, or the host, has been asked.
    Fetching {
        flight: Flight,
        asked_at: Now,
        body: Option<Box<TokenBody>>,
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
        let state = State::WantsToken { waited_for: None };
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

    /// Says how the flight that this call leads has ended, and goes on with a token if there is one.
    fn land(&mut self, flight: Flight, asked_at: Now, grant: Result<Grant>) -> Result<()> {
        let token = self.shared.with_slot::<E::Audience, _>(|slot| match grant {
            Ok(grant) => Ok(slot.gained(flight, grant, asked_at)),
            Err(error) => slot.failed(flight, asked_at, error),
        });
        match token {
            Ok(token) => {
                self.state = State::HasToken(token);
                Ok(())
            }
            Err(error) => self.fail(error),
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

    /// A 401 outranks the clock: that token is dropped, and a new one tried once.
    fn rejected(&mut self, generation: u64) -> Result<bool> {
        self.shared
            .with_slot::<E::Audience, _>(|slot| slot.reject(generation));
        if self.replayed {
            let message = "the service refused a token that had just been fetched: \
                           is the audience that of this API?";
            return self.fail(Error::new(Code::TokenRejected, message).with_status(401));
        }
        self.replayed = true;
        self.state = State::WantsToken { waited_for: None };
        Ok(false)
    }
}

impl<E: Endpoint> Drive for Machine<E> {
    fn step(&mut self, now: Now) -> Result<Step> {
        let waited_for = match &self.state {
            State::WantsToken { waited_for } => *waited_for,
            State::HasToken(token) => {
                let token = Arc::clone(token);
                return Ok(self.send(&token));
            }
            State::Done(_) => return Ok(Step::Done),
            _ => return self.out_of_order("hand in the response of the last step first"),
        };
        let (acquired, epoch) = self.shared.with_tokens(|tokens| {
            let acquired = E::Audience::slot(tokens).acquire(now, waited_for);
            (acquired, tokens.epoch())
        });
        match acquired {
            Err(error) => self.fail(error),
            Ok(Acquired::Use(token)) => Ok(self.send(&token)),
            Ok(Acquired::Wait(flight)) => {
                self.state = State::WantsToken {
                    waited_for: Some(flight),
                };
                Ok(Step::Blocked { epoch })
            }
            Ok(Acquired::Fetch(flight)) => {
                self.state = State::Fetching {
                    flight,
                    asked_at: now,
                    body: None,
                };
                Ok(match &self.api.tokens {
                    TokenSource::Host => Step::ProvideToken {
                        api: E::Audience::API,
                    },
                    TokenSource::Endpoint(request) => Step::Send(request.clone()),
                })
            }
        }
    }

    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        match &mut self.state {
            State::Fetching {
                flight,
                asked_at,
                body: body @ None,
            } => match check_head(Answerer::TokenEndpoint, status, headers) {
                Ok(()) => {
                    *body = Some(Box::new(TokenBody::new(self.api.default_lifetime)));
                    Ok(true)
                }
                Err(error) => {
                    let (flight, asked_at) = (*flight, *asked_at);
                    self.land(flight, asked_at, Err(error))?;
                    Ok(false)
                }
            },
            State::Sent {
                generation,
                body: None,
            } if status == 401 => {
                let generation = *generation;
                self.rejected(generation)
            }
            State::Sent {
                body: body @ None, ..
            } => match check_head(Answerer::Api, status, headers) {
                Ok(()) => {
                    *body = Some(self.endpoint.body());
                    Ok(true)
                }
                Err(error) => self.fail(error),
            },
            _ => self.out_of_order("there is no request whose head is awaited"),
        }
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<()> {
        match &mut self.state {
            State::Fetching {
                flight,
                asked_at,
                body: Some(body),
            } => {
                let (flight, asked_at) = (*flight, *asked_at);
                body.push(chunk)
                    .or_else(|error| self.land(flight, asked_at, Err(error)))
            }
            State::Sent {
                body: Some(body), ..
            } => body.push(chunk).or_else(|error| self.fail(error)),
            // The rest of a token response that was refused, while the old token still serves.
            State::HasToken(_) => Ok(()),
            _ => self.out_of_order("there is no response whose body is awaited"),
        }
    }

    fn end(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::WantsToken { waited_for: None }) {
            State::Fetching {
                flight,
                asked_at,
                body: Some(body),
            } => self.land(flight, asked_at, body.finish()),
            State::Sent {
                body: Some(mut body),
                ..
            } => match body.finish() {
                Ok(output) => {
                    self.state = State::Done(output);
                    Ok(())
                }
                Err(error) => self.fail(error),
            },
            State::HasToken(token) => {
                self.state = State::HasToken(token);
                Ok(())
            }
            state => {
                self.state = state;
                self.out_of_order("there is no response whose body is awaited")
            }
        }
    }

    fn failed(&mut self, failure: HostFailure, detail: &str) -> Result<()> {
        let detail = harmless(detail);
        let error = match failure {
            HostFailure::Network => {
                Error::new(Code::NetworkFailed, format!("the exchange broke{detail}"))
            }
            HostFailure::Timeout => Error::new(
                Code::TimedOut,
                format!("the exchange took too long{detail}"),
            ),
        };
        match &self.state {
            State::Fetching {
                flight, asked_at, ..
            } => {
                let (flight, asked_at) = (*flight, *asked_at);
                self.land(flight, asked_at, Err(error))
            }
            State::Sent { .. } => self.fail(error),
            State::HasToken(_) => Ok(()),
            _ => self.out_of_order("there is no exchange under way"),
        }
    }

    fn token(&mut self, token: Option<(Secret, Option<&str>)>) -> Result<()> {
        let (
            State::Fetching {
                flight, asked_at, ..
            },
            TokenSource::Host,
        ) = (&self.state, &self.api.tokens)
        else {
            return self.out_of_order("no token was asked for");
        };
        let (flight, asked_at) = (*flight, *asked_at);
        let grant = match token {
            Some((value, lifetime)) => lifetime
                .map_or(Ok(self.api.default_lifetime), Lifetime::parse)
                .and_then(|lifetime| Grant::new(value, lifetime)),
            None => {
                let message = "access_token, the host's own source of tokens, failed";
                Err(Error::new(Code::TokenProviderFailed, message))
            }
        };
        self.land(flight, asked_at, grant)
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
        if let State::Fetching { flight, .. } = &self.state {
            let flight = *flight;
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
            State::HasToken(_) => "has a token",
            State::Fetching { .. } => "fetches a token",
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

/// A host's word for a failure, if it can't be more than a word: no address, no header, no text.
fn harmless(detail: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if detail.is_empty() || detail.len() > 40 || !detail.chars().all(word) {
        return String::new();
    }
    format!(": {detail}")
}
