//! The flight that a call leads, for itself and for those that wait.

use super::again::{Answer, Want};
use super::broken::broken;
use super::{Input, Machine, State};
use crate::client::call::Step;
use crate::client::options::TokenSource;
use crate::client::pace::Way;
use crate::endpoint::TokenBody;
use crate::endpoint::head::{Answerer, check_head};
use crate::error::{Code, Error, Result};
use crate::time::Now;
use crate::token::{Flight, Grant, Lifetime, Wish};

/// The flight that a call leads.
#[derive(Clone, Copy)]
pub(super) struct Lead {
    pub(super) flight: Flight,
    pub(super) asked_at: Now,
    pub(super) wish: Wish,
}

impl Lead {
    fn want_again(self, drains: bool) -> Want {
        Want {
            wish: self.wish,
            drains,
            ..Want::default()
        }
    }
}

impl Machine {
    /// Leads a flight.
    pub(super) fn fetch(&mut self, lead: Lead) -> Step {
        match self.errand.source() {
            TokenSource::Host => {
                self.state = State::AwaitsToken { lead };
                Step::ProvideToken {
                    api: self.errand.api(),
                }
            }
            TokenSource::Endpoint(request) => {
                let request = request.clone();
                self.tries.send(&self.shared, Way::Tokens);
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
        let body = Some(Box::new(TokenBody::new(self.errand.default_lifetime())));
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
                    .map_or(Ok(self.errand.default_lifetime()), Lifetime::parse)
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
    fn land(&mut self, lead: Lead, grant: Result<Grant>) -> Result<bool> {
        let landed = self.end_flight(lead, grant);
        self.go_on(landed.map(|()| lead.want_again(false)))
    }

    /// What the token endpoint's answer came to.
    fn land_answer(&mut self, lead: Lead, answer: Answer, grant: Result<Grant>) -> Result<bool> {
        let shared = &self.shared;
        let grant = grant.map_err(|error| self.tries.heed(shared, Way::Tokens, answer, error));
        let code = grant.as_ref().err().map(Error::code);
        let want = match self.end_flight(lead, grant) {
            Ok(()) => {
                self.tries.note(Way::Tokens, answer.status, code, None);
                Ok(lead.want_again(answer.drains))
            }
            Err(error) => self
                .tries
                .after_flight(&self.shared, lead.flight, answer, error),
        };
        self.go_on(want)
    }

    fn end_flight(&self, lead: Lead, grant: Result<Grant>) -> Result<()> {
        let Lead {
            flight, asked_at, ..
        } = lead;
        self.shared
            .with_slot(self.errand.api(), |slot| match grant {
                Ok(grant) => {
                    slot.gained(flight, grant, asked_at);
                    Ok(())
                }
                Err(error) => slot.failed(flight, asked_at, error),
            })
    }
}
