//! `Call`, the steps it asks for, and the requests that it sends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tallyfold::{HostFailure, Output, Secret, Step};

use crate::detach::{BRIEF, locked};
use crate::error::Result;
use crate::host::{self, Chunk, Clocks};
use crate::plain::{object, plain};
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

    /// Runs a brief action on the core's call. No thread waits for the interpreter while it holds
    /// the lock, so this thread may keep the interpreter while it waits for the lock.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut tallyfold::Call) -> R) -> R {
        action(&mut self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Call {
    /// What to do next: `Send`, `ProvideToken`, wait while `Blocked`, `Wait`, or take the output:
    /// `Done`.
    fn step<'py>(&self, py: Python<'py>, now: Clocks) -> Result<Bound<'py, PyAny>> {
        let step = locked(py, &self.core, BRIEF, |call| call.step(now.0))?;
        Ok(match step {
            Step::Send(request) => object(py, "Send", (Request(request),)),
            Step::ProvideToken { api } => object(py, "ProvideToken", (api.as_str(),)),
            Step::Blocked { epoch } => object(py, "Blocked", (epoch,)),
            Step::Wait { ms } => object(py, "Wait", (ms,)),
            Step::Done => object(py, "Done", ()),
        }?)
    }

    /// Tells the response's status and headers. True: feed the body to `chunk`, then call `end`.
    /// False: drop the response and ask for the next step.
    fn head(&self, py: Python<'_>, status: u16, headers: Vec<(String, String)>) -> Result<bool> {
        Ok(locked(py, &self.core, BRIEF, |call| {
            call.head(status, &host::headers(&headers))
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
        value: &Bound<'_, PyAny>,
        lifetime: Option<Bound<'_, PyAny>>,
    ) -> Result<()> {
        // What is no text becomes an empty token, which the core refuses. Python's own error would
        // quote the value.
        let value = Secret::from(value.extract::<String>().unwrap_or_default());
        // A lifetime that can't be shown becomes an empty text, which the core refuses.
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
                Output::Table(table) => CountTable::made(py, table)?.into_any(),
                Output::Json(json) => PyBytes::new(py, &json).into_any(),
            },
        )
    }

    /// The request that has ended since this was last asked; once each. To be asked for after each
    /// `Send`, also where that has ended the call.
    fn attempt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &locked(py, &self.core, BRIEF, tallyfold::Call::attempt))
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
