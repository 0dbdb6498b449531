//! The request to the API, and what follows its response. A 401 is handled here.

use super::any_endpoint::AuthorizedRequest;
use super::broken::broken;
use super::pace::Destination;
use super::reply::Reply;
use super::retries::NextRequest;
use super::state_machine::{Input, SentRequest, State, StateMachine};
use super::step::Step;
use crate::code::Code;
use crate::endpoint::contract::Output;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::settling::{SETTLE_MS, is_settled};
use crate::wire::excerpt::Excerpt;
use crate::wire::status::{Answerer, check_head};

/// How often a request is sent again after a 401. It is more than once, because a token that another call fetched may
/// be revoked, too. It is limited, because the service may refuse the client's tokens at this endpoint and accept them
/// elsewhere.
const MOST_REPLAYS: u32 = 4;

impl StateMachine {
    /// Sends the request.
    pub(super) fn send(&mut self, authorized: AuthorizedRequest, now: Now) -> Step {
        let retries = &mut self.retries;
        self.shared.with(|common| retries.send(&mut common.pace, Destination::Api, now));
        let sent = SentRequest { generation: authorized.generation, at: now };
        self.state = State::Sent { sent, body: None };
        self.url = authorized.request.url().to_owned();
        self.token = authorized.token;
        Step::Send(authorized.request.with(&self.shared.config.headers))
    }

    /// Takes what the host reports about the request that was sent.
    pub(super) fn take_from_api(&mut self, input: Input<'_>) -> Result<bool> {
        let State::Sent { sent, body } = &mut self.state else {
            return self.misplaced(&input);
        };
        let reply = Reply::of(body.is_some().then_some(200));
        let asked_at = sent.at;
        let service = self.retries.service_time;
        match (body, input) {
            (None, Input::Head { status, headers }) => {
                let sent = *sent;
                self.take_head(sent, status, headers)
            }
            (Some(body), Input::Chunk(chunk)) => match body.push(chunk) {
                Ok(()) => Ok(true),
                Err(error) => self.request_failed(reply, error),
            },
            (Some(body), Input::End) => match body.finish() {
                Ok(output) => {
                    self.answered(Destination::Api, reply.status, None, None);
                    self.state = State::Done(match output {
                        Output::Table(table) => {
                            let is_past =
                                |window, ms| is_settled(window, ms, [asked_at; 2], service);
                            let table = table.unfinished(|window| !is_past(window, 0));
                            Output::Table(table.marked(|window| !is_past(window, SETTLE_MS)))
                        }
                        other => other,
                    });
                    Ok(false)
                }
                Err(error) => self.request_failed(reply, error),
            },
            (_, Input::Failed { failure, detail }) => {
                let error = broken(failure, detail, &self.url);
                self.request_failed(reply.broken_by(failure), error)
            }
            (_, input) => self.misplaced(&input),
        }
    }

    /// Takes the head of the response to the request.
    fn take_head(
        &mut self,
        sent: SentRequest,
        status: u16,
        headers: &[(&str, &str)],
    ) -> Result<bool> {
        if status == 401 {
            return self.take_401(sent);
        }
        if status < 500 {
            self.shared.with(|common| {
                let slot = common.tokens.slot(self.endpoint.api());
                slot.accepted(sent.generation);
                common.pace.accept(self.endpoint.target());
            });
        }
        match check_head(Answerer::Api, status, headers) {
            Ok(()) => {
                let body = Some(self.endpoint.body());
                self.state = State::Sent { sent, body };
                Ok(true)
            }
            Err(error) => {
                let refused =
                    self.request_failed(Reply::refused_by_head(status, headers, sent.at), error);
                if status == 200 || self.retries.setback().is_some() {
                    return refused;
                }
                refused.or_else(|error| self.ask_why(sent, error))
            }
        }
    }

    /// Drops the token, even if its lifetime is not over, and sends the request again with a newer token,
    /// unless that can't help.
    fn take_401(&mut self, sent: SentRequest) -> Result<bool> {
        let has_token = sent.has_token();
        let worth_a_try = has_token
            && self.shared.with_slot(self.endpoint.api(), |slot| slot.rejected(sent.generation));
        let tried_again = worth_a_try && self.replays < MOST_REPLAYS;
        let (code, wait_ms) = (Code::TokenRejected, tried_again.then_some(&0));
        self.answered(Destination::Api, Some(401), Some(code), wait_ms);
        if !tried_again {
            let message = if has_token {
                "the service refused a token that had just been fetched: does the audience belong to this API?"
            } else {
                "the server refused a request without a token: is the visitor signed in?"
            };
            return self.ask_why(sent, Error::new(code, message).with_status(401));
        }
        self.replays += 1;
        self.go_on(Ok(NextRequest { drains: true, ..NextRequest::default() }))
    }

    /// Ends the call with an error, which may quote the body.
    fn ask_why(&mut self, sent: SentRequest, error: Error) -> Result<bool> {
        let excerpt = Excerpt::default();
        self.state = State::Refused { sent, error, excerpt };
        Ok(true)
    }

    /// Takes the body with which the API has refused the request. If reading it fails, the
    /// call still ends with the same error.
    pub(super) fn take_excerpt(&mut self, input: Input<'_>) -> Result<bool> {
        let State::Refused { sent, error, excerpt } = &mut self.state else {
            return self.misplaced(&input);
        };
        match input {
            Input::Chunk(chunk) if excerpt.push(chunk) => Ok(true),
            Input::Chunk(_) | Input::End | Input::Failed { .. } => {
                let client_secret = self.shared.config.client_secret.as_ref();
                let own: Vec<Secret> = self.shared.config.headers.unquotable().collect();
                let secrets = [self.token.as_ref(), client_secret];
                let text = excerpt.text(secrets.into_iter().flatten().chain(&own));
                let (sent, error) = (*sent, error.clone().with_excerpt(text));
                if error.code() == Code::TokenRejected && sent.has_token() {
                    let target = self.endpoint.target();
                    self.shared.with(|common| common.pace.refuse(target, sent.at, &error));
                }
                self.fail(error)
            }
            input => self.misplaced(&input),
        }
    }

    fn request_failed(&mut self, reply: Reply, error: Error) -> Result<bool> {
        let retries = &mut self.retries;
        let next = self.shared.with(|common| retries.after_request(&mut common.pace, reply, error));
        self.go_on(next)
    }
}
