//! One API call, as the host sees it.

use std::fmt;

use super::attempt::Attempt;
use super::course::{Course, Input};
use super::step::{HostFailure, Step};
use crate::endpoint::contract::Output;
use crate::error::Result;
use crate::secret::Secret;
use crate::time::now::Now;

/// One call, driven by the host.
///
/// The loop is the same in every language: ask for the [`Step`], do it, hand in what came, ask
/// again. An error from any method is the call's final one, but for `out_of_order`, which says that the
/// host did something else than it was told, and changes nothing. A call that is dropped or
/// [closed](Call::close) early lets another one fetch the token that it was fetching.
///
/// The page of this [crate](crate) shows a whole loop.
#[must_use = "a call does nothing until it is driven"]
pub struct Call(Box<Course>);

impl Call {
    pub(super) fn new(course: Course) -> Self {
        Self(Box::new(course))
    }

    /// Whether its last request was one to the API itself, and not for a token.
    pub(crate) fn has_asked_api(&self) -> bool {
        self.0.has_asked_api()
    }

    /// What to do next.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order` while a response is being read.
    pub fn step(&mut self, now: Now) -> Result<Step> {
        self.0.step(now)
    }

    /// Status and headers of the response to the request of the last step. If `true`, its body
    /// is to be handed in; if `false`, nobody wants it, and the next step is to be asked for.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        self.0.take(Input::Head { status, headers })
    }

    /// The next bytes of the body, with any content encoding undone.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<()> {
        self.0.take(Input::Chunk(chunk)).map(drop)
    }

    /// The body is over.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn end(&mut self) -> Result<()> {
        self.0.take(Input::End).map(drop)
    }

    /// The exchange of the last step broke. `detail` may name the host's error, such as
    /// `ECONNREFUSED` or `ConnectError`; anything else is left out of the message. If there is no
    /// error, the next step is to be asked for.
    ///
    /// # Errors
    /// The call's final error, or `out_of_order`.
    pub fn failed(&mut self, failure: HostFailure, detail: &str) -> Result<()> {
        self.0.take(Input::Failed { failure, detail }).map(drop)
    }

    /// The token that [`Step::ProvideToken`] asked for, and the seconds that it lives from now on
    /// as they are written, or `None` if the host does not know.
    ///
    /// # Errors
    /// `invalid_token_response` and `invalid_token_lifetime`, unless an older token still serves;
    /// `out_of_order`.
    pub fn token(&mut self, value: Secret, lifetime: Option<&str>) -> Result<()> {
        self.0.take(Input::Token { value, lifetime }).map(drop)
    }

    /// The host could not get the token that [`Step::ProvideToken`] asked for.
    ///
    /// # Errors
    /// `token_provider_failed`, unless an older token still serves; `out_of_order`.
    pub fn token_failed(&mut self) -> Result<()> {
        self.0.take(Input::NoToken).map(drop)
    }

    /// Takes what the call gave.
    ///
    /// # Errors
    /// The call's final error; `out_of_order` before [`Step::Done`] and after the first time.
    pub fn output(&mut self) -> Result<Output> {
        self.0.output()
    }

    /// The request that has ended since this was last asked, once each: what a log or a metric of
    /// requests is made of. To be asked for whenever a response is over, or an exchange broke, also
    /// where that ended the call.
    pub fn attempt(&mut self) -> Option<Attempt> {
        self.0.attempt()
    }

    /// Gives the call up, wherever it is. Harmless at any time.
    pub fn close(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.0.state_name()).finish()
    }
}
