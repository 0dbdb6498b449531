//! `Sandbox`: a simulated service, without a network.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use tallyfold_sandbox::{FaultOptions, SandboxEvent, SandboxOptions};

use crate::arguments::{Named, Positional, keywords, options, required};
use crate::detach::{BRIEF, locked};
use crate::error::Result;
use crate::host::{self, Chunk, Clocks, pairs};
use crate::plain::{dict, object};

/// The part of `tallyfold.Sandbox` that is written in Rust.
#[pyclass(frozen, subclass, module = "tallyfold._tallyfold")]
pub(crate) struct Sandbox {
    core: Mutex<tallyfold_sandbox::Sandbox>,
    options: SandboxOptions,
}

/// The credentials that a client needs.
#[derive(Serialize)]
struct Credentials<'a> {
    client_id: &'a str,
    client_secret: &'a str,
    control_audience: &'a str,
    orchestration_audience: &'a str,
}

#[pymethods]
impl Sandbox {
    #[new]
    #[pyo3(signature = (**named))]
    fn new(py: Python<'_>, named: Option<Named<'_>>) -> Result<Self> {
        let options: SandboxOptions = keywords(py, named, &[])?;
        let core = Mutex::new(tallyfold_sandbox::Sandbox::new(options.clone())?);
        Ok(Self { core, options })
    }

    /// The credentials that the sandbox accepts, with the names of the arguments of `Client`.
    ///
    /// >>> sorted(sandbox.credentials)
    /// ['client_id', 'client_secret', 'control_audience', 'orchestration_audience']
    #[getter]
    fn credentials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let credentials = Credentials {
            client_id: &self.options.client_id,
            client_secret: self.options.client_secret.expose(),
            control_audience: &self.options.control_audience,
            orchestration_audience: &self.options.orchestration_audience,
        };
        dict(py, &credentials)
    }

    /// How many requests each endpoint has received.
    ///
    /// >>> sandbox.stats["audit_logs"]
    /// 0
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &locked(py, &self.core, BRIEF, |sandbox| sandbox.stats()))
    }

    /// Stores `count` events of one timestamp and one outcome: `"success"`, `"errors"` or
    /// `"filtered"`.
    ///
    /// Raises:
    ///     ConfigError: for a timestamp or an outcome that can't be used.
    ///
    /// >>> sandbox.record(
    /// ...     "2026-02-01T00:00:00Z", "success",
    /// ...     event_name="Page Viewed", write_key="web", integration="warehouse",
    /// ... )
    #[pyo3(signature = (*positional, **named))]
    fn record(&self, positional: Positional<'_>, named: Option<Named<'_>>) -> Result<()> {
        let event: SandboxEvent = options(2, positional, named, &[])?;
        let record = |sandbox: &mut tallyfold_sandbox::Sandbox| sandbox.record(&event);
        Ok(locked(positional.py(), &self.core, BRIEF, record)?)
    }

    /// Answers one request.
    fn handle<'py>(
        &self,
        py: Python<'py>,
        method: &Bound<'py, PyAny>,
        target: &Bound<'py, PyAny>,
        headers: &Bound<'py, PyAny>,
        body: &Bound<'py, PyAny>,
        now: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let text = |name, value| required::<String>(name, value);
        let (method, target) = (text("method", method)?, text("target", target)?);
        let headers = pairs("headers", headers)?;
        let (body, now) = (Chunk::of("body", body)?, Clocks::of("now", now)?);
        // Generating the traffic of a long window takes time, even if the request is short.
        let response = locked(py, &self.core, usize::MAX, |sandbox| {
            sandbox.handle(&method, &target, &host::headers(&headers), &body, now.0)
        });
        let fields = (
            response.status,
            response.headers,
            PyBytes::new(py, &response.body),
            response.delay_ms,
            response.cut_at,
        );
        Ok(object(py, "SandboxResponse", fields)?)
    }

    /// Adds a fault.
    ///
    /// Args:
    ///     kind: the kind of fault.
    ///     endpoint: the endpoint that has the fault; `None` for all endpoints.
    ///     every: `k` for every `k`-th matching request; `None` for the next request only.
    ///     status: the status of the response, for `"status"`.
    ///     retry_after: the `Retry-After` header of the response, for `"status"`.
    ///     milliseconds: how long to wait, for `"delay"`; how far `Date` is behind, for `"date"`.
    ///     bytes: the number of bytes of the body to send before closing, for `"truncate"`.
    ///     content_type: the content type of the response, for `"content_type"`.
    ///     body: the body of the response, for `"body"`.
    ///     amount: the number to add to a total, for `"wrong_total"`.
    ///
    /// Raises:
    ///     ConfigError: for a fault that can't be used.
    ///
    /// >>> sandbox.inject("delay", endpoint="audit_logs", milliseconds=1)
    #[pyo3(signature = (*positional, **named))]
    fn inject(&self, positional: Positional<'_>, named: Option<Named<'_>>) -> Result<()> {
        let fault: FaultOptions = options(1, positional, named, &[])?;
        let fault = fault.fault()?;
        Ok(locked(positional.py(), &self.core, BRIEF, |sandbox| sandbox.inject(fault))?)
    }

    /// Revokes all tokens that the sandbox has issued so far.
    ///
    /// >>> sandbox.revoke_tokens()
    fn revoke_tokens(&self, py: Python<'_>) {
        locked(py, &self.core, BRIEF, tallyfold_sandbox::Sandbox::revoke_tokens);
    }

    #[allow(clippy::unused_self, reason = "Python's protocol; the options hold a secret")]
    fn __repr__(&self) -> &'static str {
        "<Sandbox>"
    }
}
