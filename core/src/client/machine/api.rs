//! The request to the API and what it answers.

use super::again::{Answer, Want};
use super::broken::broken;
use super::{Input, Machine, State};
use crate::client::call::Step;
use crate::client::errand::Bearing;
use crate::client::pace::Way;
use crate::endpoint::head::{Answerer, check_head};
use crate::error::{Code, Error, Result};
use crate::time::Now;

/// The request that is on its way.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    /// Of the token that it bears.
    generation: u64,
    at: Now,
}

impl Machine {
    /// Sends the request.
    pub(super) fn send(&mut self, bearing: Bearing, now: Now) -> Step {
        self.tries.send(&self.shared, Way::Requests);
        self.state = State::Sent {
            sent: Sent {
                generation: bearing.generation,
                at: now,
            },
            body: None,
        };
        Step::Send(bearing.request)
    }

    /// What comes of the request that is on its way.
    pub(super) fn take_from_api(&mut self, input: Input<'_>) -> Result<bool> {
        let State::Sent { sent, body } = &mut self.state else {
            return self.misplaced(&input);
        };
        let answer = Answer::of(body.is_some().then_some(200));
        match (body, input) {
            (None, Input::Head { status, headers }) => {
                let sent = *sent;
                self.take_head(sent, status, headers)
            }
            (Some(body), Input::Chunk(chunk)) => match body.push(chunk) {
                Ok(()) => Ok(true),
                Err(error) => self.failed(answer, error),
            },
            (Some(body), Input::End) => match body.finish() {
                Ok(output) => {
                    self.tries.note(Way::Requests, answer.status, None, None);
                    self.state = State::Done(output);
                    Ok(false)
                }
                Err(error) => self.failed(answer, error),
            },
            (_, Input::Failed { failure, detail }) => self.failed(answer, broken(failure, detail)),
            (_, input) => self.misplaced(&input),
        }
    }

    /// The head of its response.
    fn take_head(&mut self, sent: Sent, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        if status == 401 {
            return self.take_401(sent.generation);
        }
        if status < 500 {
            self.shared
                .with_slot(self.errand.api(), |slot| slot.accepted());
        }
        match check_head(Answerer::Api, status, headers) {
            Ok(()) => {
                let body = Some(self.errand.body());
                self.state = State::Sent { sent, body };
                Ok(true)
            }
            Err(error) => self.failed(Answer::by_head(status, headers, sent.at), error),
        }
    }

    /// A 401 outranks the clock: that token is dropped, and a new one tried once.
    fn take_401(&mut self, generation: u64) -> Result<bool> {
        let worth_a_try = self
            .shared
            .with_slot(self.errand.api(), |slot| slot.reject(generation));
        let tried_again = worth_a_try && !self.replayed;
        let (code, wait_ms) = (Code::TokenRejected, tried_again.then_some(&0));
        self.tries
            .note(Way::Requests, Some(401), Some(code), wait_ms);
        if !tried_again {
            let message = "the service refused a token that had just been fetched: \
                           is the audience that of this API?";
            return self.fail(Error::new(code, message).with_status(401));
        }
        self.replayed = true;
        self.go_on(Ok(Want {
            drains: true,
            ..Want::default()
        }))
    }

    fn failed(&mut self, answer: Answer, error: Error) -> Result<bool> {
        let want = self.tries.after(&self.shared, answer, error);
        self.go_on(want)
    }
}
