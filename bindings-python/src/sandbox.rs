//! `Sandbox`: the service itself, as a value.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tallyfold::SandboxOptions;

use crate::convert::{BRIEF, Chunk, Clocks, Given, Instant, SecretText};
use crate::convert::{fitting, fitting_if, locked};
use crate::error::Result;

/// The part of `tallyfold.Sandbox` that is written in Rust.
#[pyclass(frozen, subclass, module = "tallyfold._tallyfold")]
pub(crate) struct Sandbox {
    core: Mutex<tallyfold::Sandbox>,
    options: SandboxOptions,
}

#[pymethods]
impl Sandbox {
    #[new]
    #[pyo3(signature = (
        *, seed = None, client_id = None, client_secret = None, control_audience = None,
        orchestration_audience = None, token_lifetime = None, closed_windows = false,
    ))]
    fn new(
        seed: Option<Given<u64>>,
        client_id: Option<String>,
        client_secret: Option<SecretText>,
        control_audience: Option<String>,
        orchestration_audience: Option<String>,
        token_lifetime: Option<Given<u64>>,
        closed_windows: bool,
    ) -> Result<Self> {
        let usual = SandboxOptions::default();
        let options = SandboxOptions {
            seed: fitting_if("seed", seed)?,
            client_id: client_id.unwrap_or(usual.client_id),
            client_secret: match client_secret {
                Some(secret) => secret.of("client_secret")?,
                None => usual.client_secret,
            },
            control_audience: control_audience.unwrap_or(usual.control_audience),
            orchestration_audience: orchestration_audience.unwrap_or(usual.orchestration_audience),
            token_lifetime_s: fitting_if("token_lifetime", token_lifetime)?
                .unwrap_or(usual.token_lifetime_s),
            closed_windows,
        };
        let core = Mutex::new(tallyfold::Sandbox::new(options.clone())?);
        Ok(Self { core, options })
    }

    /// What a client needs to be let in, named as `Client` names it.
    ///
    /// >>> sorted(sandbox.credentials)
    /// ['client_id', 'client_secret', 'control_audience', 'orchestration_audience']
    #[getter]
    fn credentials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let credentials = PyDict::new(py);
        credentials.set_item("client_id", &self.options.client_id)?;
        credentials.set_item("client_secret", self.options.client_secret.expose())?;
        credentials.set_item("control_audience", &self.options.control_audience)?;
        credentials.set_item(
            "orchestration_audience",
            &self.options.orchestration_audience,
        )?;
        Ok(credentials)
    }

    /// How many requests each endpoint has got.
    ///
    /// >>> sandbox.stats["control_token"]
    /// 1
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = locked(py, &self.core, BRIEF, |sandbox| sandbox.stats());
        let stats = PyDict::new(py);
        stats.set_item("control_token", counted.control_token)?;
        stats.set_item("orchestration_token", counted.orchestration_token)?;
        stats.set_item("event_delivery", counted.event_delivery)?;
        stats.set_item("event_ingestion", counted.event_ingestion)?;
        stats.set_item("audit_logs", counted.audit_logs)?;
        Ok(stats)
    }

    /// Stores `count` events of one instant and one outcome: `"success"`, `"errors"` or
    /// `"filtered"`.
    ///
    /// Raises:
    ///     ConfigError: for a timestamp or an outcome that can't be used.
    ///
    /// >>> sandbox.record(
    /// ...     "2026-02-01T00:00:00Z", "success",
    /// ...     event_name="Page Viewed", write_key="web", integration="warehouse",
    /// ... )
    #[pyo3(
        signature = (
            timestamp, outcome, *, event_name, write_key, integration, reason = "",
            count = Given::Fits(1)
        ),
        text_signature = "($self, timestamp, outcome, *, event_name, write_key, integration, \
                          reason='', count=1)"
    )]
    #[allow(clippy::too_many_arguments, reason = "Python names each of them")]
    fn record(
        &self,
        py: Python<'_>,
        timestamp: Instant,
        outcome: &str,
        event_name: &str,
        write_key: &str,
        integration: &str,
        reason: &str,
        count: Given<u64>,
    ) -> Result<()> {
        let timestamp = timestamp.of("timestamp")?;
        let count = fitting("count", count)?;
        Ok(locked(py, &self.core, BRIEF, |sandbox| {
            sandbox.record(
                &timestamp,
                outcome,
                event_name,
                write_key,
                integration,
                reason,
                count,
            )
        })?)
    }

    /// Answers one request.
    fn handle(
        &self,
        py: Python<'_>,
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: Chunk,
        now: Clocks,
    ) -> SandboxResponse {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        // Seeded traffic of a long window takes its time, however short the request is.
        SandboxResponse(locked(py, &self.core, usize::MAX, |sandbox| {
            sandbox.handle(method, target, &headers, &body, now.0)
        }))
    }

    /// Scripts a fault, given as JSON.
    fn inject_json(&self, py: Python<'_>, fault: &str) -> Result<()> {
        Ok(locked(py, &self.core, BRIEF, |sandbox| {
            sandbox.inject_json(fault)
        })?)
    }

    /// Makes every token that was given out so far worthless.
    ///
    /// >>> sandbox.revoke_tokens()
    fn revoke_tokens(&self, py: Python<'_>) {
        locked(py, &self.core, BRIEF, tallyfold::Sandbox::revoke_tokens);
    }

    #[allow(
        clippy::unused_self,
        reason = "Python's protocol; the options hold a secret"
    )]
    fn __repr__(&self) -> &'static str {
        "<Sandbox>"
    }
}

/// The sandbox's answer, and what its transport is to do with it.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct SandboxResponse(tallyfold::SandboxResponse);

#[pymethods]
impl SandboxResponse {
    /// The HTTP status.
    #[getter]
    fn status(&self) -> u16 {
        self.0.status
    }

    /// Pairs of name and value.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        self.0.headers.clone()
    }

    /// The whole body.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.body)
    }

    /// Milliseconds to wait before answering.
    #[getter]
    fn delay_ms(&self) -> u64 {
        self.0.delay_ms
    }

    /// After how many bytes of the body to break the connection; `None` to send it whole.
    #[getter]
    fn cut_at(&self) -> Option<usize> {
        self.0.cut_at
    }

    fn __repr__(&self) -> String {
        format!(
            "<SandboxResponse {}, {} bytes>",
            self.0.status,
            self.0.body.len()
        )
    }
}
