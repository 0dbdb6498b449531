//! A token fetch that a call does for itself and for the calls that wait for it, and what follows
//! it.

use super::broken::broken;
use super::options::TokenSource;
use super::pace::Destination;
use super::reply::Reply;
use super::retries::NextRequest;
use super::retry::passing::is_passing;
use super::state_machine::{Input, OwnFetch, State, StateMachine};
use super::step::Step;
use crate::access::token::{Grant, Lifetime};
use crate::code::Code;
use crate::endpoint::token_response::TokenResponse;
use crate::error::{Error, Result};
use crate::spelling::{Name, words};
use crate::wire::status::{Answerer, check_head};

impl StateMachine {
    /// Begins a fetch.
    pub(super) fn fetch(&mut self, fetch: OwnFetch) -> Step {
        match &self.endpoint.tokens().source {
            TokenSource::Host => {
                self.state = State::AwaitsToken { fetch };
                Step::ProvideToken { api: self.endpoint.api() }
            }
            TokenSource::Endpoint(request) => {
                self.url = request.url().to_owned();
                let request = request.clone().with(&self.shared.config.headers);
                let retries = &mut self.retries;
                let now = fetch.asked_at;
                self.shared
                    .with(|common| retries.send(&mut common.pace, Destination::TokenEndpoint, now));
                self.state = State::FetchesToken { fetch, body: None };
                Step::Send(request)
            }
            // The requests of this client have no token, so no call fetches one.
            TokenSource::None => Step::Done,
        }
    }

    /// Takes what the host reports about the token request that was sent.
    pub(super) fn take_from_token_endpoint(&mut self, input: Input<'_>) -> Result<bool> {
        let State::FetchesToken { fetch, body } = &mut self.state else {
            return self.misplaced(&input);
        };
        let fetch = *fetch;
        let reply = Reply::of(body.is_some().then_some(200));
        match (body, input) {
            (None, Input::Head { status, headers }) => self.take_token_head(fetch, status, headers),
            (Some(body), Input::Chunk(chunk)) => match body.push(chunk) {
                Ok(()) => Ok(true),
                Err(error) => {
                    let drains = true;
                    self.token_request_failed(fetch, Reply { drains, ..reply }, error)
                }
            },
            (Some(body), Input::End) => match body.finish() {
                Ok(grant) => {
                    self.answered(Destination::TokenEndpoint, reply.status, None, None);
                    self.fetched(fetch, grant)
                }
                Err(error) => self.token_request_failed(fetch, reply, error),
            },
            (_, Input::Failed { failure, detail }) => {
                let error = broken(failure, detail, &self.url);
                self.token_request_failed(fetch, reply.broken_by(failure), error)
            }
            (_, input) => self.misplaced(&input),
        }
    }

    /// Takes the head of the response to the token request.
    fn take_token_head(
        &mut self,
        fetch: OwnFetch,
        status: u16,
        headers: &[(&str, &str)],
    ) -> Result<bool> {
        if let Err(error) = check_head(Answerer::TokenEndpoint, status, headers) {
            let reply = Reply::refused_by_head(status, headers, fetch.asked_at);
            return self.token_request_failed(fetch, reply, error);
        }
        let body = TokenResponse::new(self.endpoint.tokens().default_lifetime);
        self.state = State::FetchesToken { fetch, body: Some(Box::new(body)) };
        Ok(true)
    }

    /// Records the token, or the failure, that the host reports.
    pub(super) fn take_from_host(&mut self, input: Input<'_>) -> Result<bool> {
        let State::AwaitsToken { fetch } = &self.state else {
            return self.misplaced(&input);
        };
        let fetch = *fetch;
        let grant = match input {
            Input::Token { value, lifetime } => lifetime
                .map_or(Ok(self.endpoint.tokens().default_lifetime), Lifetime::parse)
                .and_then(|lifetime| Grant::new(value, lifetime)),
            Input::NoToken => {
                let source = Name::from("access_token");
                let message = words![source, ", the host's own source of tokens, failed"];
                Err(Error::new(Code::TokenProviderFailed, message))
            }
            input => return self.misplaced(&input),
        };
        match grant {
            Ok(grant) => self.fetched(fetch, grant),
            Err(error) => {
                let ended = self.shared.with_slot(self.endpoint.api(), |slot| {
                    slot.fetch_failed(fetch.id, fetch.asked_at, error)
                });
                self.go_on(ended.map(|()| after(fetch, false)))
            }
        }
    }

    /// Uses the token of a successful fetch.
    fn fetched(&mut self, fetch: OwnFetch, grant: Grant) -> Result<bool> {
        self.shared.with_slot(self.endpoint.api(), |slot| {
            slot.fetch_succeeded(fetch.id, grant, fetch.asked_at);
        });
        self.go_on(Ok(after(fetch, false)))
    }

    /// Handles a failed token request. An older token may still be valid; if not, the request may
    /// be sent again.
    fn token_request_failed(
        &mut self,
        fetch: OwnFetch,
        reply: Reply,
        error: Error,
    ) -> Result<bool> {
        let (api, target) = (self.endpoint.api(), self.endpoint.target());
        let retries = &mut self.retries;
        let to = Destination::TokenEndpoint;
        let next = self.shared.with(|common| {
            let error = retries.failed(&mut common.pace, to, reply, error);
            let code = error.code();
            let slot = common.tokens.slot(api);
            match slot.fetch_failed(fetch.id, fetch.asked_at, error) {
                Ok(()) => {
                    retries.note(to, reply.status, Some(code), None);
                    Ok(after(fetch, reply.drains))
                }
                Err(error) => {
                    if !is_passing(&error) {
                        common.pace.refuse(target, fetch.asked_at, &error);
                    }
                    retries.after_own_fetch(&mut common.pace, fetch.id, reply, error)
                }
            }
        });
        self.go_on(next)
    }
}

/// The request to the API that the token was for.
fn after(fetch: OwnFetch, drains: bool) -> NextRequest {
    NextRequest { history: fetch.history, drains, ..NextRequest::default() }
}
