//! The request to the API and what it answers.

use super::{Machine, State};
use crate::client::call::Step;
use crate::endpoint::Endpoint;
use crate::endpoint::head::{Answerer, check_head};
use crate::error::{Code, Error, Result};
use crate::token::{AccessToken, Wish};

impl<E: Endpoint> Machine<E> {
    /// Sends the request with that token.
    pub(super) fn send(&mut self, token: &AccessToken<E::Audience>) -> Step {
        self.state = State::Sent {
            generation: token.generation(),
            body: None,
        };
        Step::Send(self.endpoint.request(&self.api.base, token))
    }

    /// The head of the API's response.
    pub(super) fn take_head(
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
