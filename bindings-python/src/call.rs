//! `Call`, its steps, and the requests to send.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tallyfold::{HostFailure, Output, Secret, Step};

use crate::arguments::required;
use crate::detach::{BRIEF, locked};
use crate::error::Result;
use crate::host::{self, Chunk, Clocks, pairs};
use crate::plain::{object, plain};
use crate::table::CountTable;

/// One call of a `Machine`: get the next `step`, do it, and report the result. Always `close`
/// the call at the end.
///
/// Every method may raise `ConfigError` with `out_of_order`, if it doesn't match the last step, or
/// the error that ends the call. Only one thread may drive a call.
#[pyclass(frozen, generic, module = "tallyfold")]
pub(crate) struct Call {
    core: Mutex<tallyfold::Call>,
    received: AtomicUsize,
}

impl Call {
    pub(crate) fn new(core: tallyfold::Call) -> Self {
        Self { core: Mutex::new(core), received: AtomicUsize::new(0) }
    }

    /// How many bytes of responses `chunk` has received.
    pub(crate) fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    /// Runs a brief action on the core's call. No thread that holds the lock waits for the
    /// interpreter, so this thread may keep the interpreter while it waits for the lock.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut tallyfold::Call) -> R) -> R {
        action(&mut self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Call {
    /// What to do next: `Send`, `ProvideToken`, `Blocked`, `Wait` or `Done`.
    fn step<'py>(&self, py: Python<'py>, now: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let now = Clocks::of("now", now)?;
        let step = locked(py, &self.core, BRIEF, |call| call.step(now.0))?;
        Ok(match step {
            Step::Send(request) => object(py, "Send", (Request(request),)),
            Step::ProvideToken { api } => object(py, "ProvideToken", (api.as_str(),)),
            Step::Blocked { epoch } => object(py, "Blocked", (epoch,)),
            Step::Wait { ms } => object(py, "Wait", (ms,)),
            Step::Done => object(py, "Done", ()),
        }?)
    }

    /// How many milliseconds are left until the call's deadline; `None` if it has no deadline. When they
    /// are over, end what the last step requested, and report `failed(..., timed_out=True)`.
    fn time_left(&self, py: Python<'_>, now: &Bound<'_, PyAny>) -> Result<Option<u64>> {
        let now = Clocks::of("now", now)?;
        Ok(locked(py, &self.core, BRIEF, |call| call.time_left(now.0)))
    }

    /// Reports the status and headers of the response. If the method returns `True`, pass the body to
    /// `chunk` and then call `end`. If it returns `False`, drop the response and get the next step.
    fn head(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let (status, headers) = (required("status", status)?, pairs("headers", headers)?);
        Ok(locked(py, &self.core, BRIEF, |call| call.head(status, &host::headers(&headers)))?)
    }

    /// Reports the next bytes of the response's body, any number of them.
    fn chunk(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<()> {
        let data = Chunk::of("data", data)?;
        self.received.fetch_add(data.len(), Ordering::Relaxed);
        Ok(locked(py, &self.core, data.len(), |call| call.chunk(&data))?)
    }

    /// Reports that the response's body is complete.
    fn end(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(py, &self.core, self.received(), tallyfold::Call::end)?)
    }

    /// Reports that the exchange failed. `detail` is the name of the error, such as
    /// `"ConnectError"`; it must not contain any text of the request. `stale` means that the
    /// connection had served an earlier request, and the server had closed it since.
    #[pyo3(signature = (detail, *, timed_out = false, stale = false))]
    fn failed(&self, py: Python<'_>, detail: &str, timed_out: bool, stale: bool) -> Result<()> {
        let (failure, detail) = match stale {
            true => (HostFailure::Stale, detail),
            false => host::failure(detail, timed_out, false),
        };
        Ok(locked(py, &self.core, BRIEF, |call| call.failed(failure, detail))?)
    }

    /// Answers `ProvideToken` with a token and its remaining lifetime in seconds; `None` if the
    /// lifetime is not known.
    #[pyo3(signature = (value, lifetime = None))]
    fn token(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        lifetime: Option<Bound<'_, PyAny>>,
    ) -> Result<()> {
        // A value that is not text becomes an empty token, which the core refuses. Python's own
        // error would quote the value.
        let value = Secret::from(value.extract::<String>().unwrap_or_default());
        // A lifetime that can't be converted to text becomes an empty text, which the core refuses.
        let text = |lifetime: Bound<'_, PyAny>| lifetime.str()?.extract::<String>();
        let lifetime = lifetime.map(|lifetime| text(lifetime).unwrap_or_default());
        Ok(locked(py, &self.core, BRIEF, |call| call.token(value, lifetime.as_deref()))?)
    }

    /// Answers `ProvideToken` if your own source of tokens failed.
    fn token_failed(&self, py: Python<'_>) -> Result<()> {
        Ok(locked(py, &self.core, BRIEF, tallyfold::Call::token_failed)?)
    }

    /// Makes the call fail early, instead of after its retries, if the service is down or has just refused the client's
    /// credentials or tokens. `since` is what `Machine._failures` returned when the user of the call began to wait.
    fn _fail_fast(&self, py: Python<'_>, since: u64) {
        locked(py, &self.core, BRIEF, |call| call.fail_fast(since));
    }

    /// The result of the call; available once, after `Done`.
    fn output<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(match locked(py, &self.core, BRIEF, tallyfold::Call::output)? {
            Output::Table(table) => CountTable::made(py, table)?.into_any(),
            Output::Json(document) => PyBytes::new(py, document.bytes()).into_any(),
            Output::Token(token) => {
                (token.value.expose(), token.expires_in_s).into_pyobject(py)?.into_any()
            }
        })
    }

    /// The request that has ended since the previous call of this method; each request is returned once.
    /// Call the method after each `Send`, even if the call has ended.
    fn attempt<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &locked(py, &self.core, BRIEF, tallyfold::Call::attempt))
    }

    /// Ends the call early, so that another call can fetch the token that this call may be
    /// fetching. After the end of the call, `close` does nothing.
    fn close(&self, py: Python<'_>) {
        locked(py, &self.core, BRIEF, tallyfold::Call::close);
    }

    #[allow(clippy::unused_self, reason = "Python's protocol; a call may hold a token")]
    fn __repr__(&self) -> &'static str {
        "<Call>"
    }
}

/// One complete HTTP request, to be sent unchanged. `headers` and `body` may contain a token or a
/// client secret; the request's `repr` does not show them, and it can't be pickled.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Request(tallyfold::Request);

#[pymethods]
impl Request {
    /// `"GET"` or `"POST"`.
    #[getter]
    fn method(&self) -> &'static str {
        self.0.method()
    }

    /// The absolute address; it never contains a secret.
    #[getter]
    fn url(&self) -> &str {
        self.0.url()
    }

    /// Pairs of name, in lower case, and value, in the order to send them.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyString>)> {
        self.0.headers().map(|(name, value)| (name.to_owned(), PyString::new(py, value))).collect()
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
