//! The sans-IO client: `Machine`, its `Call`s, and the steps they ask for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tallyfold::{ClientOptions, HostFailure, Output, RetryPolicy, Tolerate};

use crate::aggregator::Limits;
use crate::convert::{BRIEF, Chunk, Clocks, Given, Instant, Milliseconds, SecretText};
use crate::convert::{attempt, fitting, fitting_if, locked, random_seed};
use crate::error::Result;
use crate::table::CountTable;

/// The client without its HTTP: it says what to send and is told what came back.
///
/// `Client` and `AsyncClient` drive one of these; with it any other HTTP stack fits as well. One
/// machine serves all threads and all calls of a program, and shares their tokens (service
/// reference 5). The arguments are those of `Client`; `host_tokens` says that the host answers
/// `ProvideToken` steps, in place of a secret, and `in_browser` that visitors can read what it
/// holds, as with Pyodide: a secret is refused then, unless `dangerously_allow_browser`.
///
/// Raises:
///     ConfigError: for arguments that can't be used.
///
/// >>> machine = tallyfold.Machine(cluster_endpoint="https://cluster.example", host_tokens=True)
/// >>> call = machine.event_delivery(
/// ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
/// ... )
/// >>> call.step(tallyfold.Now.read())
/// ProvideToken(api='control')
/// >>> call.token("a-token-from-elsewhere", 3600)
/// >>> call.step(tallyfold.Now.read())
/// Send(request=<Request POST https://cluster.example/v1.1/analytics/event_delivery>)
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Machine(tallyfold::Client);

#[pymethods]
impl Machine {
    #[new]
    #[pyo3(signature = (
        *, cluster_endpoint = None, client_id = None, client_secret = None,
        control_audience = None, base_url = None, auth_url = None, orchestration_audience = None,
        host_tokens = false, in_browser = false, dangerously_allow_browser = false,
        dangerously_allow_http = false, default_token_lifetime = None, limits = None,
        tolerate = Vec::new(), max_retries = None, longest_retry_wait = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        cluster_endpoint: Option<Given<String>>,
        client_id: Option<Given<String>>,
        client_secret: Option<SecretText>,
        control_audience: Option<Given<String>>,
        base_url: Option<Given<String>>,
        auth_url: Option<Given<String>>,
        orchestration_audience: Option<Given<String>>,
        host_tokens: bool,
        in_browser: bool,
        dangerously_allow_browser: bool,
        dangerously_allow_http: bool,
        default_token_lifetime: Option<Given<u64>>,
        limits: Option<&Bound<'_, Limits>>,
        tolerate: Vec<String>,
        max_retries: Option<Given<u32>>,
        longest_retry_wait: Option<Milliseconds>,
    ) -> Result<Self> {
        let usual = RetryPolicy::default();
        let retry = RetryPolicy {
            max_retries: fitting_if("max_retries", max_retries)?.unwrap_or(usual.max_retries),
            longest_wait_ms: match longest_retry_wait {
                Some(wait) => wait.of("longest_retry_wait")?,
                None => usual.longest_wait_ms,
            },
            seed: random_seed(),
        };
        let options = ClientOptions {
            cluster_endpoint: fitting_if("cluster_endpoint", cluster_endpoint)?,
            client_id: fitting_if("client_id", client_id)?,
            client_secret: client_secret
                .map(|secret| secret.of("client_secret"))
                .transpose()?,
            control_audience: fitting_if("control_audience", control_audience)?,
            base_url: fitting_if("base_url", base_url)?,
            auth_url: fitting_if("auth_url", auth_url)?,
            orchestration_audience: fitting_if("orchestration_audience", orchestration_audience)?,
            host_tokens,
            in_browser,
            dangerously_allow_browser,
            dangerously_allow_http,
            default_token_lifetime_s: fitting_if("default_token_lifetime", default_token_lifetime)?,
            limits: limits.map(|limits| limits.get().0).unwrap_or_default(),
            tolerate: Tolerate::parse(&tolerate)?,
            hash_seed: random_seed(),
            retry,
        };
        Ok(Self(tallyfold::Client::new(options)?))
    }

    /// A call for event delivery metrics (service reference 4.4), whose output is a `CountTable`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (start, end, dimensions, group_by = None))]
    fn event_delivery(
        &self,
        start: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
        group_by: Option<Given<Vec<String>>>,
    ) -> Result<Call> {
        let (start, end) = (start.of("start")?, end.of("end")?);
        let dimensions = fitting("dimensions", dimensions)?;
        let group_by = fitting_if("group_by", group_by)?;
        Call::new(
            self.0
                .event_delivery(&start, &end, &dimensions, group_by.as_deref()),
        )
    }

    /// A call for event ingestion metrics (service reference 4.5), whose output is a `CountTable`.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (start, end, dimensions, group_by = None))]
    fn event_ingestion(
        &self,
        start: Instant,
        end: Instant,
        dimensions: Given<Vec<String>>,
        group_by: Option<Given<Vec<String>>>,
    ) -> Result<Call> {
        let (start, end) = (start.of("start")?, end.of("end")?);
        let dimensions = fitting("dimensions", dimensions)?;
        let group_by = fitting_if("group_by", group_by)?;
        Call::new(
            self.0
                .event_ingestion(&start, &end, &dimensions, group_by.as_deref()),
        )
    }

    /// A call for a page of audit logs (service reference 4.2), whose output is JSON as bytes.
    ///
    /// Raises:
    ///     ConfigError: for arguments that can't be used.
    #[pyo3(signature = (page = None, per_page = None))]
    fn audit_logs(&self, page: Option<Given<i64>>, per_page: Option<Given<i64>>) -> Result<Call> {
        let page = fitting_if("page", page)?;
        let per_page = fitting_if("per_page", per_page)?;
        Call::new(self.0.audit_logs(page, per_page))
    }

    /// A number that changes whenever a token was gained or lost, or its fetching ended: what a
    /// `Blocked` call waits for.
    fn token_epoch(&self) -> u64 {
        self.0.token_epoch()
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; the options hold a secret"
    )]
    fn __repr__(&self) -> &'static str {
        "<Machine>"
    }
}

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
    fn new(call: tallyfold::Result<tallyfold::Call>) -> Result<Self> {
        Ok(Self {
            core: Mutex::new(call?),
            received: AtomicUsize::new(0),
        })
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
        let received = self.received.load(Ordering::Relaxed);
        Ok(locked(py, &self.core, received, tallyfold::Call::end)?)
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
            tallyfold::Step::Wait { ms } => Self::Wait(Wait { ms }),
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
/// is to be tried again, or the service has asked to be left alone for a while.
#[pyclass(frozen, get_all, module = "tallyfold")]
pub(crate) struct Wait {
    /// For how long; at most 2^31 - 1.
    ms: u64,
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

/// The call is complete: take its `output`.
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
