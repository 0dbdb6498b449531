//! One API call, as the host sees it.

use std::fmt;
use std::marker::PhantomData;

use super::attempt::Attempt;
use super::delay::Delay;
use super::patience::{Patient, Setback};
use super::state_machine::{Input, StateMachine};
use super::step::{HostFailure, Step};
use crate::code::Code;
use crate::endpoint::contract::{CallOutput, Output};
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::settling::ServiceTime;
use crate::time::window::Window;

/// One call, driven by the host.
///
/// The loop is the same in every language: get the next [`Step`], do what it requests, report the
/// result, and repeat. An error from any method ends the call, except `out_of_order`: it means that
/// the host did not do what the step requested, and it changes nothing. If a call is dropped or
/// [closed](Call::close) while it fetches a token, another call fetches the token instead.
///
/// The documentation of this [crate](crate) shows a whole loop.
///
/// `T` is the result of the call: [`CountTable`](crate::CountTable), [`Json`](crate::Json) or
/// [`Token`](crate::Token), or any [`Output`] if calls to several endpoints are kept together.
#[must_use = "a call does nothing until it is driven"]
pub struct Call<T = Output> {
    state_machine: Box<StateMachine>,
    outcome: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(super) fn new(state_machine: Box<StateMachine>) -> Self {
        Self { state_machine, outcome: PhantomData }
    }

    /// The same call, for code that handles calls to several endpoints in the same way.
    pub fn untyped(self) -> Call {
        Call::new(self.state_machine)
    }

    /// Makes it a call of a patient long range. The call begins at `begin_ms` on the monotonic clock.
    pub(crate) fn be_patient(&mut self, patient: Patient, begin_ms: u64) {
        self.state_machine.be_patient(patient, begin_ms);
    }

    /// Makes the call fail early, instead of after its retries, because somebody waits for it, such as the visitor of a web app.
    ///
    /// - After three temporary failures of the client's requests in a row, the call does not try again.
    /// - After eight, it sends nothing, because the requests for other windows would fail, too; three failures may be due to
    ///   three windows. `since` is what [`Machine::failures`](crate::Machine::failures) returned when the waiting began: if the
    ///   service was down before, the call still sends one request.
    /// - For ten seconds after the service has refused the client's credentials or tokens in a call to the same endpoint, it
    ///   sends nothing.
    pub fn fail_fast(&mut self, since: u64) {
        self.state_machine.fail_fast(since);
    }

    /// Sets a deadline. The call ends then, whatever it is doing.
    pub(crate) fn ending(mut self, deadline: Option<Delay>) -> Self {
        self.state_machine.deadline = deadline;
        self
    }

    /// Sets the deadline to the end of a wait, which begins now unless it has begun before.
    pub(crate) fn end_with(&mut self, deadline: &mut Option<Delay>, now: Now) {
        if let Some(deadline) = deadline {
            deadline.rest(now);
        }
        self.state_machine.deadline = *deadline;
    }

    /// The failure that ended the call, if the long range that it belongs to should try again.
    pub(crate) fn setback(&self) -> Option<Setback> {
        self.state_machine.setback()
    }

    /// How many requests of the client had failed temporarily when the call's last request was sent.
    /// `None` if the API has not answered that request, or has answered with a temporary failure.
    pub(crate) fn answered_after(&self) -> Option<u64> {
        self.state_machine.answered_after()
    }

    /// The service's clock, as its last response shows it.
    pub(crate) fn service_time(&self) -> Option<ServiceTime> {
        self.state_machine.service_time()
    }

    /// Whether the call's last request went to the API itself, not to a token endpoint.
    pub(crate) fn has_asked_api(&self) -> bool {
        self.state_machine.has_asked_api()
    }

    /// Whether a response was late because of its window: the service had begun to respond, or has responded to other
    /// requests.
    pub(crate) fn is_too_slow(&self) -> bool {
        self.state_machine.is_too_slow()
    }

    /// The window whose counts it requests; `None` for a call that requests no counts.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.state_machine.endpoint.window()
    }

    /// What to do next.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order` while a response is being read.
    pub fn step(&mut self, now: Now) -> Result<Step> {
        self.state_machine.step(now)
    }

    /// How many milliseconds are left until the call's deadline; `None` if it has none. When they are over, stop what the last
    /// step requested. For an exchange, or a wait for the host's own source of tokens, report a timeout with [`Call::failed`].
    /// After a wait for another call, call [`Call::step`], which returns the error.
    pub fn time_left(&mut self, now: Now) -> Option<u64> {
        self.state_machine.left(now)
    }

    /// Takes the status and headers of the response to the last step's request. If it returns `true`,
    /// pass the body to [`Call::chunk`] and [`Call::end`]; if `false`, drop the body and get
    /// the next step.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        self.state_machine.take(Input::Head { status, headers })
    }

    /// Takes the next bytes of the body. Undo any content encoding first.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<()> {
        self.state_machine.take(Input::Chunk(chunk)).map(drop)
    }

    /// Reports that the body is complete.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn end(&mut self) -> Result<()> {
        self.state_machine.take(Input::End).map(drop)
    }

    /// Reports that the exchange of the last step failed. `detail` may be the name of the host's
    /// error, such as `ECONNREFUSED` or `ConnectError`; any other text is left out of the message.
    /// If this returns no error, get the next step.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn failed(&mut self, failure: HostFailure, detail: &str) -> Result<()> {
        self.state_machine.take(Input::Failed { failure, detail }).map(drop)
    }

    /// Takes the token that [`Step::ProvideToken`] requested and its remaining lifetime: a number
    /// of seconds as text, or `None` if the host does not know it.
    ///
    /// # Errors
    /// `invalid_token_response` and `invalid_token_lifetime`, unless an older token is
    /// still valid; `out_of_order`.
    pub fn token(&mut self, value: Secret, lifetime: Option<&str>) -> Result<()> {
        self.state_machine.take(Input::Token { value, lifetime }).map(drop)
    }

    /// Reports that the host could not get the token that [`Step::ProvideToken`] requested.
    ///
    /// # Errors
    /// `token_provider_failed`, unless an older token is still valid; `out_of_order`.
    pub fn token_failed(&mut self) -> Result<()> {
        self.state_machine.take(Input::NoToken).map(drop)
    }

    /// The request that has ended since the last call of this method, for logs and metrics of
    /// requests. Each request is returned once. Call this method after every response and every
    /// failed exchange, even if it ended the call.
    pub fn attempt(&mut self) -> Option<Attempt> {
        self.state_machine.attempt()
    }

    /// After [`Step::Blocked`] with this epoch: gives up the token fetch that this call waits for, so that its next step
    /// fetches a token itself. This is for a host in which the other call may have stopped without being
    /// [closed](Call::close). It changes nothing if a fetch has ended since then.
    pub fn overtake(&mut self, epoch: u64) {
        self.state_machine.overtake(epoch);
    }

    /// Ends the call early. It may be called at any time, even after the end.
    pub fn close(&mut self) {
        self.state_machine.close();
    }
}

impl<T: CallOutput> Call<T> {
    /// Returns the result of the call, once.
    ///
    /// # Errors
    /// The call's final error; `out_of_order` before [`Step::Done`] and after the first time.
    pub fn output(&mut self) -> Result<T> {
        let of_another = || Error::new(Code::OutOfOrder, "the call was to another endpoint");
        self.state_machine.output().and_then(|output| T::of(output).ok_or_else(of_another))
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.state_machine.state_name()).finish()
    }
}
