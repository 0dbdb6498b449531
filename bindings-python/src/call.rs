//! `Call`, the steps it asks for, and the requests that it sends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tallyfold::{HostFailure, Output};

use crate::convert::{BRIEF, Chunk, Clocks, SecretText, attempt, locked};
use crate::error::Result;
use crate::table::CountTable;

/// One call of a `Machine`: ask for the next `step`, do it, say what came of it; and `close` it at
/// the end, whatever happened.
///
/// Every method may raise: `ConfigError` with `out_of_order` when it was not its turn, and the
/// error that ends the call. One thread drives a call.
#[pyclass(frozen, generic, module = "tallyfold")]
pub(crate) struct Call {
    core: Mutex<tallyfold::Call>,
    received: AtomicUsize,
}

impl Call {
    pub(crate) fn new(core: tallyfold::Call) -> Self {
        Self {
            core: Mutex::new(core),
            received: AtomicUsize::new(0),
        }
    }

    /// How many bytes it was given.
    pub(crate) fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    /// Runs a brief action on the core's call. Whoever holds its lock lets go of it without the
    /// interpreter, so it may be waited for with it.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut tallyfold::Call) -> R) -> R {
        action(&mut self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Call {
    /// What to do next: `Send`, `ProvideToken`, wait while `Blocked`, `Wait`, or take the output:
    /// `Done`.
    fn step(&self, py: Python<'_>, now: Clocks) -> Result<Step> {
        Ok(Step::new(locked(py, &self.core, BRIEF, |call| {
            call.step(now.0)
        })?))
    }

    /// Tells the response's status and headers. True: feed the body to `chunk`, then call `end`.
    /// False: drop the response and ask for the next step.
    fn head(&self, py: Python<'_>, status: u16, headers: Vec<(String, String)>) -> Result<bool> {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Ok(locked(py, &self.core, BRIEF, |call| {
            call.head(status, &headers)
        })?)
    }

    /// Tells the next bytes of the response's body, any number of them.
    fn chunk(&self, py: Python<'_>, data: Chunk) -> Result<()> {
        self.received.fetch_add(data.len(), Ordering::Relaxed);
        Ok(locked(py, &self.core, data.len(), |call| {
            call.chunk(&data)
        })?)
    }

    /// Tells that the response's body is complete.
    fn end(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(
            py,
            &self.core,
            self.received(),
            tallyfold::Call::end,
        )?)
    }

    /// Tells that the exchange broke off. `detail` is a word for it, such as `"ConnectError"`, and
    /// holds no text that the HTTP library made of the request.
    #[pyo3(signature = (detail, *, timed_out = false))]
    fn failed(&self, py: Python<'_>, detail: &str, timed_out: bool) -> Result<()> {
        let failure = if timed_out {
            HostFailure::Timeout
        } else {
            HostFailure::Network
        };
        Ok(locked(py, &self.core, BRIEF, |call| {
            call.failed(failure, detail)
        })?)
    }

    /// Answers `ProvideToken`: a token, and for how many seconds from now it is valid; `None` when
    /// that is not known.
    #[pyo3(signature = (value, lifetime = None))]
    fn token(
        &self,
        py: Python<'_>,
        value: SecretText,
        lifetime: Option<Bound<'_, PyAny>>,
    ) -> Result<()> {
        let value = value.token();
        // What has no text gets none, which the core refuses as no number of seconds.
        let text = |lifetime: Bound<'_, PyAny>| lifetime.str()?.extract::<String>();
        let lifetime = lifetime.map(|lifetime| text(lifetime).unwrap_or_default());
        Ok(locked(py, &self.core, BRIEF, |call| {
            call.token(value, lifetime.as_deref())
        })?)
    }

    /// Answers `ProvideToken`: the host's own source of tokens failed.
    fn token_failed(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(
            py,
            &self.core,
            BRIEF,
            tallyfold::Call::token_failed,
        )?)
    }

    /// What the call was for, once, after `Done`.
    fn output<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(
            match locked(py, &self.core, BRIEF, tallyfold::Call::output)? {
                Output::Table(table) => Bound::new(py, CountTable(table))?.into_any(),
                Output::Json(json) => PyBytes::new(py, &json).into_any(),
            },
        )
    }

    /// The request that has ended since this was last asked; once each. To be asked for after each
    /// `Send`, also where that has ended the call.
    fn attempt<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ended = locked(py, &self.core, BRIEF, tallyfold::Call::attempt);
        ended.map(|ended| attempt(py, ended)).transpose()
    }

    /// Gives the call up, and the fetching of a token that others may be waiting for. Harmless
    /// after the end.
    fn close(&self, py: Python<'_>) {
        locked(py, &self.core, BRIEF, tallyfold::Call::close);
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; a call may hold a token"
    )]
    fn __repr__(&self) -> &'static str {
        "<Call>"
    }
}

/// What a call asks its host to do.
#[derive(IntoPyObject)]
pub(crate) enum Step {
    Send(Send),
    ProvideToken(ProvideToken),
    Blocked(Blocked),
    Wait(Wait),
    Done(Done),
}

impl Step {
    fn new(step: tallyfold::Step) -> Self {
        match step {
            tallyfold::Step::Send(request) => Self::Send(Send(request)),
            tallyfold::Step::ProvideToken { api } => {
                Self::ProvideToken(ProvideToken { api: api.as_str() })
            }
            tallyfold::Step::Blocked { epoch } => Self::Blocked(Blocked { epoch }),
            tallyfold::Step::Wait { ms } => Self::Wait(Wait::new(ms)),
            tallyfold::Step::Done => Self::Done(Done),
        }
    }
}

/// Send `request`, then tell `head`, `chunk` and `end`, or `failed`.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Send(tallyfold::Request);

#[pymethods]
impl Send {
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __match_args__: (&'static str,) = ("request",);

    /// The request to send.
    #[getter]
    fn request(&self) -> Request {
        Request(self.0.clone())
    }

    fn __repr__(&self) -> String {
        format!("Send(request={})", self.request().__repr__())
    }
}

/// Tell `token` (or `token_failed`): a token for `api`, `"control"` or `"orchestration"`. A token
/// of the one is not valid for the other (service reference 5.1).
#[pyclass(frozen, get_all, module = "tallyfold")]
pub(crate) struct ProvideToken {
    /// Which of the two APIs the token is for.
    api: &'static str,
}

#[pymethods]
impl ProvideToken {
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __match_args__: (&'static str,) = ("api",);

    fn __repr__(&self) -> String {
        format!("ProvideToken(api='{}')", self.api)
    }
}

/// Another call is fetching the token. Wait until `Machine.token_epoch()` differs from `epoch`,
/// then ask for the next step.
#[pyclass(frozen, get_all, module = "tallyfold")]
pub(crate) struct Blocked {
    /// The epoch to wait for the end of.
    epoch: u64,
}

#[pymethods]
impl Blocked {
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __match_args__: (&'static str,) = ("epoch",);

    fn __repr__(&self) -> String {
        format!("Blocked(epoch={})", self.epoch)
    }
}

/// Wait for `ms` milliseconds of the monotonic clock, or less, and ask for the next step: something
/// is to be tried again, the service has asked to be left alone for a while, or no window closes.
#[pyclass(frozen, get_all, module = "tallyfold")]
pub(crate) struct Wait {
    /// For how long; at most 2^31 - 1.
    ms: u64,
}

impl Wait {
    pub(crate) fn new(ms: u64) -> Self {
        Self { ms }
    }
}

#[pymethods]
impl Wait {
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __match_args__: (&'static str,) = ("ms",);

    fn __repr__(&self) -> String {
        format!("Wait(ms={})", self.ms)
    }
}

/// The call is complete: take its `output`. Of a machine with many calls: there is no further one.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Done;

#[pymethods]
impl Done {
    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "Done()"
    }
}

/// One HTTP request, complete and byte-exact. `headers` and `body` may hold a token or a client
/// secret; the request's `repr` does not show them, and it can't be pickled.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Request(tallyfold::Request);

#[pymethods]
impl Request {
    /// `"GET"` or `"POST"`.
    #[getter]
    fn method(&self) -> &'static str {
        self.0.method()
    }

    /// The absolute address; it never holds a secret.
    #[getter]
    fn url(&self) -> &str {
        self.0.url()
    }

    /// Pairs of name, in lower case, and value, in the order to send them.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(&'static str, Bound<'py, PyString>)> {
        self.0
            .headers()
            .map(|(name, value)| (name, PyString::new(py, value)))
            .collect()
    }

    /// The body; `None` for a request that has none.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.body().map(|body| PyBytes::new(py, body))
    }

    fn __repr__(&self) -> String {
        format!("<Request {} {}>", self.0.method(), self.0.url())
    }
}
