//! The flight that a call leads, for itself and for those that wait.

use super::{Machine, State};
use crate::client::call::Step;
use crate::client::options::TokenSource;
use crate::endpoint::head::{Answerer, check_head};
use crate::endpoint::{Endpoint, TokenBody};
use crate::error::Result;
use crate::time::Now;
use crate::token::{Audience, Flight, Grant, Wish};

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
                self.state = State::FetchesToken { lead, body: None };
                Step::Send(request)
            }
        }
    }

    /// Says how the flight that this call leads has ended. `drains` if more of its response may
    /// come; no more of it is wanted.
    pub(super) fn land(&mut self, lead: Lead, grant: Result<Grant>, drains: bool) -> Result<bool> {
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
    pub(super) fn take_token_head(
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
}
