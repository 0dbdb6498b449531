//! What a server for pages asks the core.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tallyfold::{Answer, Code, PageQuestion, PageRequest, PagesOptions};

use crate::arguments::{Named, keywords};
use crate::error::Result;
use crate::host::{self, Clocks};

/// What the host of a server for pages does with its options: for how many seconds it keeps provisional answers, how
/// many calls it makes at the same time, how many may wait, and how many bytes it keeps.
#[pyfunction]
#[pyo3(signature = (**named))]
pub(crate) fn pages_options(
    py: Python<'_>,
    named: Option<Named<'_>>,
) -> Result<(f64, u32, u32, u64)> {
    let options: PagesOptions = keywords(py, named, &[])?;
    options.check()?;
    let seconds = options.provisional_ms as f64 / 1000.0;
    Ok((
        seconds,
        options.concurrency,
        options.queue,
        options.memory_bytes,
    ))
}

/// What a page asks: what kind of question it is, and its parts.
#[pyfunction]
#[pyo3(signature = (service, method, target, headers, body, is_allowed, now, **named))]
#[allow(
    clippy::too_many_arguments,
    reason = "all parts of a request, in one step"
)]
pub(crate) fn page_question<'py>(
    py: Python<'py>,
    service: &str,
    method: &str,
    target: &str,
    headers: Vec<(String, String)>,
    body: &[u8],
    is_allowed: bool,
    now: &Bound<'py, PyAny>,
    named: Option<Named<'py>>,
) -> Result<Bound<'py, PyAny>> {
    let options: PagesOptions = keywords(py, named, &[])?;
    let asked = PageRequest {
        method,
        target,
        headers: &host::headers(&headers),
        body,
        is_allowed,
    };
    Ok(
        match PageQuestion::read(&options, service, asked, Clocks::of("now", now)?.0)? {
            PageQuestion::Metrics {
                metric,
                query,
                key,
                is_settled,
            } => (
                metric.as_str(),
                (
                    query.start.to_string(),
                    query.end.to_string(),
                    query
                        .dimensions
                        .iter()
                        .map(|one| one.as_str())
                        .collect::<Vec<_>>(),
                ),
                (key, is_settled),
            )
                .into_pyobject(py)?
                .into_any(),
            PageQuestion::Token(api) => {
                ("token", (api.as_str(),), ()).into_pyobject(py)?.into_any()
            }
            PageQuestion::AuditLogs(logs) => ("audit_logs", (logs.page, logs.per_page), ())
                .into_pyobject(py)?
                .into_any(),
        },
    )
}

/// The answer with a document: the status, pairs of headers, and the body.
#[pyfunction]
pub(crate) fn good_answer(py: Python<'_>, body: Vec<u8>) -> PyResult<Bound<'_, PyAny>> {
    parts(py, Answer::good(body))
}

/// The answer with an error.
#[pyfunction]
pub(crate) fn failed_answer<'py>(
    py: Python<'py>,
    code: &str,
    status: Option<u16>,
    message: String,
    retry_after: Option<u64>,
    reference: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let known = Code::ALL.iter().find(|known| known.as_str() == code);
    let code = known.copied().unwrap_or(Code::UnexpectedStatus);
    let answer = match reference {
        None => Answer::failed(code, status, message, retry_after),
        Some(reference) => Answer::failed_inside(code, status, message, retry_after, reference),
    };
    parts(py, answer)
}

/// The answer when too many requests wait already.
#[pyfunction]
pub(crate) fn busy_answer(py: Python<'_>, retry_after: u64) -> PyResult<Bound<'_, PyAny>> {
    parts(py, Answer::busy(retry_after))
}

fn parts(py: Python<'_>, answer: Answer) -> PyResult<Bound<'_, PyAny>> {
    let body = PyBytes::new(py, &answer.body);
    let all = (answer.status, answer.headers, body).into_pyobject(py)?;
    Ok(all.into_any())
}

/// The bytes to keep under a key.
#[pyfunction]
pub(crate) fn sealed<'py>(py: Python<'py>, key: &str, body: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &tallyfold::sealed(key, body))
}

/// The answer in bytes that were kept under that key, if it is whole.
#[pyfunction]
pub(crate) fn unsealed<'py>(
    py: Python<'py>,
    key: &str,
    kept: &[u8],
) -> Option<Bound<'py, PyBytes>> {
    tallyfold::unsealed(key, kept).map(|body| PyBytes::new(py, body))
}
