//! The order of steps in a call: perhaps a token request, then the request, which is repeated after a 401 or after a
//! transient failure.

use std::sync::Arc;

use super::any_endpoint::{AnyEndpoint, Ready};
use super::attempt::Attempt;
use super::delay::Delay;
use super::pace::Destination;
use super::patience::{Patient, Setback};
use super::retries::{NextRequest, Retries};
use super::retry::passing::LONGEST_TIMER_MS;
use super::shared::{Common, Shared};
use super::step::{HostFailure, Step};
use crate::access::slot::{Acquired, FetchHistory, FetchId};
use crate::access::tokens::Tokens;
use crate::code::Code;
use crate::endpoint::Target;
use crate::endpoint::contract::{Body, Output};
use crate::endpoint::token_response::TokenResponse;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::time::settling::ServiceTime;
use crate::wire::excerpt::Excerpt;
use crate::wire::retry_after::sent_ms;

/// What the host reports.
pub(super) enum Input<'a> {
    Head { status: u16, headers: &'a [(&'a str, &'a str)] },
    Chunk(&'a [u8]),
    End,
    Failed { failure: HostFailure, detail: &'a str },
    Token { value: Secret, lifetime: Option<&'a str> },
    NoToken,
}

/// A call in progress, to any endpoint.
pub(super) struct StateMachine {
    pub(super) shared: Arc<Shared>,
    pub(super) endpoint: Box<dyn AnyEndpoint>,
    pub(super) state: State,
    /// How many 401s have been answered with a newer token.
    pub(super) replays: u32,
    pub(super) retries: Retries,
    /// The address that the last request went to.
    pub(super) url: String,
    /// The token that the last request to the API carried.
    pub(super) token: Option<Secret>,
    /// When the call ends, whatever it is doing.
    pub(super) deadline: Option<Delay>,
    /// Whether the deadline comes before the time limit of the current exchange, or with it.
    is_cut: bool,
    /// How often the last request was sent again because of its connection.
    resent: u32,
}

pub(super) enum State {
    /// The next request has not been sent yet.
    Ready(NextRequest),
    /// The token request was sent; once the head of its response is accepted, the body is read.
    FetchesToken {
        fetch: OwnFetch,
        body: Option<Box<TokenResponse>>,
    },
    /// The host must provide a token.
    AwaitsToken {
        fetch: OwnFetch,
    },
    /// The request was sent; once the head of its response is accepted, the body is read.
    Sent {
        sent: SentRequest,
        body: Option<Box<dyn Body>>,
    },
    /// The API has refused the request for good. The error will quote the beginning of the body.
    Refused {
        sent: SentRequest,
        error: Error,
        excerpt: Excerpt,
    },
    Done(Output),
    Failed(Error),
}

/// A token fetch that this call does for itself and for the calls that wait for it.
#[derive(Clone, Copy)]
pub(super) struct OwnFetch {
    pub(super) id: FetchId,
    pub(super) asked_at: Now,
    pub(super) history: FetchHistory,
}

/// The request that was sent.
#[derive(Clone, Copy)]
pub(super) struct SentRequest {
    /// The generation of its token.
    pub(super) generation: u64,
    pub(super) at: Now,
}

impl SentRequest {
    pub(super) fn has_token(self) -> bool {
        self.generation > 0
    }
}

/// How often a request is sent again because of its connection: all idle connections of a host may be closed at the same
/// time, and not every host can choose another one.
const MOST_RESENT: u32 = 16;

impl StateMachine {
    pub(super) fn new(shared: Arc<Shared>, endpoint: Box<dyn AnyEndpoint>) -> Self {
        let (api, target) = (endpoint.api(), endpoint.target());
        let retries = Retries::new(api, target, endpoint.window(), shared.config.timeout);
        Self {
            shared,
            endpoint,
            state: State::Ready(NextRequest::default()),
            replays: 0,
            retries,
            url: String::new(),
            token: None,
            deadline: None,
            is_cut: false,
            resent: 0,
        }
    }

    /// Makes it a call of a patient long range. The call begins at `begin_ms` on the monotonic clock.
    pub(super) fn be_patient(&mut self, patient: Patient, begin_ms: u64) {
        self.retries.patient = Some(patient);
        self.state =
            State::Ready(NextRequest { delay: Delay::Until(begin_ms), ..NextRequest::default() });
    }

    /// See [`Retries::fail_fast`].
    pub(super) fn fail_fast(&mut self, since: u64) {
        self.retries.fail_fast(since);
    }

    /// The failure that ended the call, if its long range should try again.
    pub(super) fn setback(&self) -> Option<Setback> {
        self.retries.setback()
    }

    /// See [`Retries::answered_after`].
    pub(super) fn answered_after(&self) -> Option<u64> {
        self.retries.answered_after()
    }

    /// The service's clock, as the last response shows it.
    pub(super) fn service_time(&self) -> Option<ServiceTime> {
        self.retries.service_time
    }

    /// See [`Retries::is_too_slow`].
    pub(super) fn is_too_slow(&self) -> bool {
        self.retries.is_too_slow()
    }

    /// Whether the last request went to the API itself, not to a token endpoint.
    pub(super) fn has_asked_api(&self) -> bool {
        self.retries.last() == Destination::Api
    }

    /// Records a complete response to the last request, and keeps its result for the host.
    pub(super) fn answered(
        &mut self,
        to: Destination,
        status: Option<u16>,
        code: Option<Code>,
        wait_ms: Option<&u64>,
    ) {
        self.resent = 0;
        let retries = &mut self.retries;
        self.shared.with(|common| retries.answered(&mut common.pace, to));
        retries.note(to, status, code, wait_ms);
    }

    /// Ends the call with an error.
    pub(super) fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.state = State::Failed(error.clone());
        Err(error)
    }

    /// Continues with the next request, or ends the call. Returns `false`, because the body of the
    /// previous response isn't needed.
    pub(super) fn go_on(&mut self, next: Result<NextRequest>) -> Result<bool> {
        let next = next.or_else(|error| self.fail(error))?;
        self.state = State::Ready(next);
        Ok(false)
    }

    /// The call's final error if it has one; otherwise an error with this message.
    fn out_of_order<T>(&self, message: &str) -> Result<T> {
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            _ => Err(Error::new(Code::OutOfOrder, message)),
        }
    }

    /// Refuses a report that the host should not have made.
    pub(super) fn misplaced(&self, input: &Input<'_>) -> Result<bool> {
        self.out_of_order(match input {
            Input::Token { .. } | Input::NoToken => "no token was asked for",
            Input::Head { .. } => "no request is waiting for a response head",
            Input::Chunk(_) | Input::End | Input::Failed { .. } => {
                "no response is waiting for its body"
            }
        })
    }
}

/// What a call does next when it is ready to send.
enum Next {
    Wait(u64),
    /// Wait until another call's fetch has ended.
    Block {
        fetch: FetchId,
        epoch: u64,
    },
    Fetch(FetchId),
    Go(Ready),
    /// Another call failed to fetch the token.
    Share {
        fetch: FetchId,
        error: Error,
    },
    Fail(Error),
}

/// Decides what a call does next, from the state that all calls of the client share. It gets a token
/// only once requests to the API are allowed, because there may be another token by then.
fn next(
    endpoint: &dyn AnyEndpoint,
    common: &mut Common,
    now: Now,
    request: &mut NextRequest,
    retries: &mut Retries,
) -> Next {
    let Common { tokens, pace } = common;
    let ending = retries.gives_up(pace, now);
    if let Some(error) = ending.or_else(|| retries.refused(pace, now)) {
        return Next::Fail(error);
    }
    let api = endpoint.api();
    // Both waits are read now, before the call's own wait is over, because each wait starts when it
    // is first read.
    let api_rest = match endpoint.target() {
        Target::Token => 0,
        _ => pace.rest(api, Destination::Api, now),
    };
    let token_rest = pace.rest(api, Destination::TokenEndpoint, now);
    if let Some(error) = retries.gone_down(pace, Destination::Api, api_rest) {
        return Next::Fail(error);
    }
    let rest = request.delay.rest(now).max(api_rest);
    if rest > 0 {
        return Next::Wait(rest);
    }
    let epoch = tokens.epoch();
    let begin = |tokens: &mut Tokens| Next::Fetch(tokens.slot(api).begin_fetch());
    match endpoint.acquire(tokens, now, request.history) {
        Acquired::Use(ready) => Next::Go(ready),
        Acquired::Renew(ready) if token_rest > 0 => Next::Go(ready),
        Acquired::Renew(_) => begin(tokens),
        Acquired::Wait(fetch) => Next::Block { fetch, epoch },
        Acquired::Failed { fetch, error } => Next::Share { fetch, error },
        Acquired::Fetch
            if let Some(error) =
                retries.gone_down(pace, Destination::TokenEndpoint, token_rest) =>
        {
            Next::Fail(error)
        }
        Acquired::Fetch if token_rest > 0 => Next::Wait(token_rest),
        Acquired::Fetch => match request.repeats.as_ref().map_or(Ok(()), |of| pace.pay(of)) {
            Ok(()) => begin(tokens),
            Err(unpaid) => Next::Fail(unpaid),
        },
    }
}

impl StateMachine {
    /// What to do next.
    pub(super) fn step(&mut self, now: Now) -> Result<Step> {
        let request = match &mut self.state {
            State::Ready(request) => request,
            State::Done(_) => return Ok(Step::Done),
            _ => return self.out_of_order("first do what the last step asked for"),
        };
        let left_ms = left_of(&mut self.deadline, now);
        if left_ms == Some(0) {
            return self.fail(too_late());
        }
        self.is_cut = match (left_ms, self.shared.config.timeout) {
            (Some(left_ms), Patience::Milliseconds(ms)) => left_ms <= ms,
            (left_ms, _) => left_ms.is_some(),
        };
        request.drains = false;
        let (endpoint, retries) = (&*self.endpoint, &mut self.retries);
        let next = self.shared.with(|common| next(endpoint, common, now, request, retries));
        match next {
            Next::Wait(ms) => {
                Ok(Step::Wait { ms: ms.min(left_ms.unwrap_or(ms)).min(LONGEST_TIMER_MS) as u32 })
            }
            Next::Block { fetch, epoch } => {
                request.history.take_part(fetch);
                Ok(Step::Blocked { epoch })
            }
            Next::Fetch(id) => {
                let mut history = request.history;
                history.take_part(id);
                Ok(self.fetch(OwnFetch { id, asked_at: now, history }))
            }
            Next::Go(Ready::Send(request)) => Ok(self.send(request, now)),
            Next::Go(Ready::Done(output)) => {
                self.state = State::Done(output);
                Ok(Step::Done)
            }
            Next::Share { fetch, error } => {
                let retries = &mut self.retries;
                let next = self.shared.with(|common| {
                    retries.after_fetch_of_another(&mut common.pace, fetch, error, now)
                });
                self.go_on(next)?;
                self.step(now)
            }
            Next::Fail(error) => self.fail(error),
        }
    }

    /// How many milliseconds are left to the call; `None` if it has no deadline.
    pub(super) fn left(&mut self, now: Now) -> Option<u64> {
        left_of(&mut self.deadline, now)
    }

    /// Takes what the host reports. Returns whether the body should be passed next.
    pub(super) fn take(&mut self, input: Input<'_>) -> Result<bool> {
        let failure = match &input {
            Input::Failed { failure, .. } => Some(*failure),
            _ => None,
        };
        // If the body of a refusal hangs, the error is still the refusal.
        let is_refused = matches!(self.state, State::Refused { .. });
        if failure == Some(HostFailure::Timeout) && self.is_cut && !is_refused {
            return self.end_late(&input);
        }
        if let Input::Head { headers, .. } = &input {
            self.retries.service_time = self.service_time_of(headers);
        }
        let is_sent = matches!(self.state, State::FetchesToken { .. } | State::Sent { .. });
        if failure == Some(HostFailure::Stale) && is_sent && self.resent < MOST_RESENT {
            self.resent += 1;
            return self.send_again(&input);
        }
        match &mut self.state {
            State::FetchesToken { .. } => self.take_from_token_endpoint(input),
            State::AwaitsToken { .. } => self.take_from_host(input),
            State::Sent { .. } => self.take_from_api(input),
            State::Refused { .. } => self.take_excerpt(input),
            State::Ready(request) if request.drains => match input {
                Input::Chunk(_) => Ok(false),
                Input::End | Input::Failed { .. } => {
                    request.drains = false;
                    Ok(false)
                }
                _ => self.misplaced(&input),
            },
            _ => self.misplaced(&input),
        }
    }

    /// The service's clock, as the response to the request that was sent shows it.
    fn service_time_of(&self, headers: &[(&str, &str)]) -> Option<ServiceTime> {
        let asked_at = match &self.state {
            State::FetchesToken { fetch, .. } => fetch.asked_at,
            State::Sent { sent, .. } => sent.at,
            _ => return None,
        };
        sent_ms(headers, asked_at.unix_ms).map(|sent_ms| ServiceTime { sent_ms, asked_at })
    }

    /// Sends a request again, because its connection could not be used. That shows nothing about the service, and does not
    /// count as a retry.
    fn send_again(&mut self, input: &Input<'_>) -> Result<bool> {
        let history = match &self.state {
            State::Sent { .. } => FetchHistory::default(),
            State::FetchesToken { fetch, .. } => {
                let (id, history) = (fetch.id, fetch.history);
                self.shared.with_slot(self.endpoint.api(), |slot| slot.fetch_abandoned(id));
                history
            }
            _ => return self.misplaced(input),
        };
        let code = Some(Code::NetworkFailed);
        self.retries.note(self.retries.last(), None, code, Some(&0));
        self.go_on(Ok(NextRequest { history, ..NextRequest::default() }))
    }

    /// Ends the call in the middle of an exchange, because its deadline has come. That shows nothing about the service.
    fn end_late(&mut self, input: &Input<'_>) -> Result<bool> {
        match self.state {
            State::FetchesToken { .. } | State::Sent { .. } => {
                let code = Some(Code::DeadlineExceeded);
                self.retries.note(self.retries.last(), None, code, None);
            }
            State::AwaitsToken { .. } => {}
            _ => return self.misplaced(input),
        }
        self.close();
        self.fail(too_late())
    }

    /// Gives up the fetch of another call, unless a fetch has ended since that epoch.
    pub(super) fn overtake(&self, epoch: u64) {
        let api = self.endpoint.api();
        self.shared.with(|common| {
            if common.tokens.epoch() == epoch && matches!(self.state, State::Ready(_)) {
                common.tokens.slot(api).give_up_fetch();
            }
        });
    }

    pub(super) fn output(&mut self) -> Result<Output> {
        let taken = Error::new(Code::OutOfOrder, "the output was already taken");
        match std::mem::replace(&mut self.state, State::Failed(taken)) {
            State::Done(output) => Ok(output),
            state => {
                self.state = state;
                self.out_of_order("the call has no output yet; drive it until it is done")
            }
        }
    }

    pub(super) fn attempt(&mut self) -> Option<Attempt> {
        self.retries.take()
    }

    pub(super) fn close(&mut self) {
        if let State::FetchesToken { fetch, .. } | State::AwaitsToken { fetch } = &self.state {
            let id = fetch.id;
            self.shared.with_slot(self.endpoint.api(), |slot| slot.fetch_abandoned(id));
        }
        if !matches!(self.state, State::Done(_) | State::Failed(_)) {
            self.state = State::Failed(Error::new(Code::OutOfOrder, "the call was closed"));
        }
    }

    pub(super) fn state_name(&self) -> &'static str {
        match &self.state {
            State::Ready(_) => "ready to send",
            State::FetchesToken { .. } => "fetches a token",
            State::AwaitsToken { .. } => "awaits the host's token",
            State::Sent { .. } => "sent",
            State::Refused { .. } => "reads why it was refused",
            State::Done(_) => "done",
            State::Failed(_) => "failed",
        }
    }
}

fn left_of(deadline: &mut Option<Delay>, now: Now) -> Option<u64> {
    deadline.as_mut().map(|deadline| deadline.rest(now))
}

fn too_late() -> Error {
    Error::new(Code::DeadlineExceeded, "the call took longer than its deadline")
}

impl Drop for StateMachine {
    fn drop(&mut self) {
        self.close();
    }
}
