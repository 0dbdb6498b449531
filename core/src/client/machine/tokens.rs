//! The flight that a call leads, for itself and for those that wait.

use super::again::{Answer, Want};
use super::broken::broken;
use super::{Input, Machine, State};
use crate::client::call::Step;
use crate::client::options::TokenSource;
use crate::client::pace::{Payment, Way};
use crate::endpoint::head::{Answerer, check_head};
use crate::endpoint::{Endpoint, Target, TokenBody};
use crate::error::{Code, Error, Result};
use crate::time::Now;
use crate::token::{Audience, Flight, Grant, Lifetime, Wish};

/// The flight that a call leads.
#[derive(Clone, Copy)]
pub(super) struct Lead {
    pub(super) flight: Flight,
    pub(super) asked_at: Now,
    pub(super) wish: Wish,
}

impl<E: Endpoint> Machine<E> {
    /// Leads a flight.
    pub(super) fn fetch(&mut self, lead: Lead) -> Step {
        match &self.api.tokens {
            TokenSource::Host => {
                self.state = State::AwaitsToken { lead };
                Step::ProvideToken {
                    api: E::Audience::API,
                }
            }
            TokenSource::Endpoint(request) => {
                let request = request.clone();
                self.begin_to_send();
                self.token_requests += 1;
                self.state = State::FetchesToken { lead, body: None };
                Step::Send(request)
            }
        }
    }

    /// What comes of the request for a token that is on its way.
    pub(super) fn take_from_token_endpoint(&mut self, input: Input<'_>) -> Result<bool> {
        let State::FetchesToken { lead, body } = &mut self.state else {
            return self.misplaced(&input);
        };
        let lead = *lead;
        let answer = Answer::of(body.is_some().then_some(200));
        match (body, input) {
            (None, Input::Head { status, headers }) => self.take_token_head(lead, status, headers),
            (Some(body), Input::Chunk(chunk)) => match body.push(chunk) {
                Ok(()) => Ok(true),
                Err(error) => {
                    let drains = true;
                    self.land_answer(lead, Answer { drains, ..answer }, Err(error))
                }
            },
            (Some(body), Input::End) => {
                let grant = body.finish();
                self.land_answer(lead, answer, grant)
            }
            (_, Input::Failed { failure, detail }) => {
                self.land_answer(lead, answer, Err(broken(failure, detail)))
            }
            (_, input) => self.misplaced(&input),
        }
    }

    /// The head of its response.
    fn take_token_head(
        &mut self,
        lead: Lead,
        status: u16,
        headers: &[(&str, &str)],
    ) -> Result<bool> {
        if let Err(error) = check_head(Answerer::TokenEndpoint, status, headers) {
            let answer = Answer::by_head(status, headers, lead.asked_at);
            return self.land_answer(lead, answer, Err(error));
        }
        let body = Some(Box::new(TokenBody::new(self.api.default_lifetime)));
        self.state = State::FetchesToken { lead, body };
        Ok(true)
    }

    /// What the host says that was asked for a token.
    pub(super) fn take_from_host(&mut self, input: Input<'_>) -> Result<bool> {
        let State::AwaitsToken { lead } = &self.state else {
            return self.misplaced(&input);
        };
        let lead = *lead;
        match input {
            Input::Token { value, lifetime } => {
                let grant = lifetime
                    .map_or(Ok(self.api.default_lifetime), Lifetime::parse)
                    .and_then(|lifetime| Grant::new(value, lifetime));
                self.land(lead, grant)
            }
            Input::NoToken => {
                let message = "access_token, the host's own source of tokens, failed";
                self.land(lead, Err(Error::new(Code::TokenProviderFailed, message)))
            }
            input => self.misplaced(&input),
        }
    }

    /// Says how the flight that this call leads has ended. An older token may still serve.
    pub(super) fn land(&mut self, lead: Lead, grant: Result<Grant>) -> Result<bool> {
        match self.end_flight(lead, grant) {
            Ok(()) => self.want_again(lead, false),
            Err(error) => self.fail(error),
        }
    }

    /// What the token endpoint's answer came to.
    pub(super) fn land_answer(
        &mut self,
        lead: Lead,
        answer: Answer,
        grant: Result<Grant>,
    ) -> Result<bool> {
        let grant = grant.map_err(|error| {
            let (api, asked_ms) = (E::Audience::API, answer.asked_ms);
            self.shared
                .with(|common| common.pace.heed(api, Way::Tokens, error, asked_ms))
        });
        let code = grant.as_ref().err().map(Error::code);
        let Err(error) = self.end_flight(lead, grant) else {
            self.note(Target::Token, answer.status, code, None);
            return self.want_again(lead, answer.drains);
        };
        let floor_ms = answer.asked_ms.unwrap_or(0);
        let retry = self.retry_flight(&error, floor_ms);
        let wait_ms = retry.as_ref().ok().copied();
        self.note(Target::Token, answer.status, code, wait_ms);
        self.wait_or_fail(retry, Want::to_repeat(lead.flight, error, answer.drains))
    }

    fn end_flight(&mut self, lead: Lead, grant: Result<Grant>) -> Result<()> {
        let Lead {
            flight, asked_at, ..
        } = lead;
        self.shared.with_slot::<E::Audience, _>(|slot| match grant {
            Ok(grant) => {
                slot.gained(flight, grant, asked_at);
                Ok(())
            }
            Err(error) => slot.failed(flight, asked_at, error),
        })
    }

    fn want_again(&mut self, lead: Lead, drains: bool) -> Result<bool> {
        self.state = State::WantsToken(Want {
            wish: lead.wish,
            drains,
            ..Want::default()
        });
        Ok(false)
    }

    /// Another call has failed to get the token for this one, too. To try again costs this call a
    /// retry, and nothing of the client's budget unless it is the one that sends.
    pub(super) fn share_failure(&mut self, flight: Flight, error: Error, now: Now) -> Result<bool> {
        let api = E::Audience::API;
        let floor_ms = self
            .shared
            .with(|common| common.pace.rest(api, Way::Tokens, now));
        let retry = self.retry_flight(&error, floor_ms);
        self.wait_or_fail(retry, Want::to_repeat(flight, error, false))
    }

    fn retry_flight(&self, error: &Error, floor_ms: u64) -> Result<u64> {
        let (error, retries) = (error.clone(), self.retries);
        self.shared.with(|common| {
            let pace = &mut common.pace;
            pace.retry(error, retries, floor_ms, Payment::BySender)
        })
    }
}
