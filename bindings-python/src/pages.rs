//! The functions of the core that a server for web apps calls.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMapping};
use tallyfold::{
    Answer, Code, Dimension, MetricsQuestion, PageQuestion, PageRequest, PagesOptions, Permission,
    QueryOptions, RangeTag, Window, WindowsQuestion,
};

use crate::arguments::{Named, keywords, one_or_more};
use crate::detach::{BRIEF, detached, locked};
use crate::error::Result;
use crate::host::{self, Clocks, random_seed};

/// The rows that a user may see: rows that have, in each named dimension, the given value or one of the given values.
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct VisibleRows(Arc<tallyfold::VisibleRows>);

#[pymethods]
impl VisibleRows {
    #[new]
    fn new(values: &Bound<'_, PyMapping>) -> Result<Self> {
        let mut pairs = Vec::new();
        for item in values.items()? {
            let (name, values): (String, Bound<'_, PyAny>) = item.extract()?;
            let values = one_or_more(&name, &values)?;
            pairs.push((name, values));
        }
        Ok(Self(Arc::new(tallyfold::VisibleRows::new(&pairs)?)))
    }

    /// Makes the body with only these rows, for a page that has requested the dimensions `asked`. `body` is what the service
    /// has sent for `dimensions`.
    fn narrow<'py>(
        &self,
        py: Python<'py>,
        start: &str,
        end: &str,
        dimensions: Vec<String>,
        asked: Vec<String>,
        body: &[u8],
    ) -> Result<Bound<'py, PyBytes>> {
        let named = |names: Vec<String>| -> tallyfold::Result<Vec<Dimension>> {
            names.iter().map(|name| Dimension::parse(name)).collect()
        };
        let query = QueryOptions::new(Window::parse(start, end)?, &named(dimensions)?);
        let asked = named(asked)?;
        let narrow = || self.0.narrow(&query, &asked, body, random_seed());
        let narrowed = detached(py, body.len(), narrow)?;
        Ok(PyBytes::new(py, &narrowed))
    }
}

/// The errors that a server for web apps has written to its log.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
#[derive(Default)]
pub(crate) struct ErrorLog(Mutex<tallyfold::ErrorLog>);

#[pymethods]
impl ErrorLog {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Returns the reference under which the log has an error, and the line to write if the log doesn't have the error yet.
    fn note(
        &self,
        py: Python<'_>,
        text: &str,
        now_ms: u64,
        reference: String,
    ) -> (String, Option<String>) {
        locked(py, &self.0, BRIEF, |log| log.note(text, now_ms, reference))
    }
}

/// Returns the options that the host of a server for web apps applies itself: for how many seconds it keeps provisional
/// answers, how many calls it makes at the same time, how many calls may wait, and how many bytes it keeps.
#[pyfunction]
#[pyo3(signature = (**named))]
pub(crate) fn pages_options(
    py: Python<'_>,
    named: Option<Named<'_>>,
) -> Result<(f64, u32, u32, u64)> {
    let options: PagesOptions = keywords(py, named, &[])?;
    options.check()?;
    let seconds = options.provisional_ms as f64 / 1000.0;
    Ok((seconds, options.concurrency, options.queue, options.memory_bytes))
}

/// Reads the request of a page. Returns the kind of request, and its parts.
#[pyfunction]
#[pyo3(signature = (service, method, target, headers, body, permission, now, **named))]
#[allow(clippy::too_many_arguments, reason = "all parts of a request, in one step")]
pub(crate) fn page_question<'py>(
    py: Python<'py>,
    service: &str,
    method: &str,
    target: &str,
    headers: Vec<(String, String)>,
    body: &[u8],
    permission: &Bound<'py, PyAny>,
    now: &Bound<'py, PyAny>,
    named: Option<Named<'py>>,
) -> Result<Bound<'py, PyAny>> {
    let options: PagesOptions = keywords(py, named, &[])?;
    let permission = match permission.cast::<VisibleRows>() {
        Ok(rows) => Permission::Only(Arc::clone(&rows.get().0)),
        Err(_) => match permission.extract() {
            Ok(true) => Permission::Everything,
            _ => Permission::Refused,
        },
    };
    let asked = PageRequest {
        method,
        target,
        headers: &host::headers(&headers),
        body,
        permission: &permission,
    };
    Ok(match PageQuestion::read(&options, service, asked, Clocks::of("now", now)?.0)? {
        PageQuestion::Metrics(question) => parts_of(question).into_pyobject(py)?.into_any(),
        PageQuestion::Windows(WindowsQuestion { windows, key }) => {
            let windows: Vec<_> = windows.into_iter().map(parts_of).collect();
            ("windows", windows, key).into_pyobject(py)?.into_any()
        }
        PageQuestion::Token(api) => ("token", (api.as_str(),), ()).into_pyobject(py)?.into_any(),
        PageQuestion::AuditLogs(logs) => {
            ("audit_logs", (logs.page, logs.per_page), ()).into_pyobject(py)?.into_any()
        }
    })
}

/// The metric; its arguments; and the key of the answer, whether it is settled, and, if the page gets only some rows, the
/// dimensions that it has requested.
type Metrics =
    (&'static str, (String, String, Vec<&'static str>), (String, bool, Option<Vec<&'static str>>));

fn parts_of(question: MetricsQuestion) -> Metrics {
    let query = question.query;
    let names = |dimensions: Vec<Dimension>| {
        let names = dimensions.into_iter().map(Dimension::as_str);
        names.collect::<Vec<_>>()
    };
    (
        question.metric.as_str(),
        (query.start.to_string(), query.end.to_string(), names(query.dimensions)),
        (question.key, question.is_settled, question.narrowed_to.map(names)),
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
    let code = code_of(code);
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

fn code_of(name: &str) -> Code {
    Code::from_name(name).unwrap_or(Code::UnexpectedStatus)
}

/// The status and headers of the answer with a range. The status is 304 if the page has the range already, because the page's
/// header `if-none-match` contains the tag. Without a tag, browsers do not keep the answer.
#[pyfunction]
pub(crate) fn range_answer<'py>(
    py: Python<'py>,
    tag: Option<String>,
    if_none_match: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let tag = tag.map(RangeTag::resume);
    parts(py, Answer::of_range(tag.as_ref(), if_none_match))
}

/// The tag of a range. `own` is a text of the server, `key` is the key of the range, and `windows` are the keys and bodies of
/// the windows that are not settled.
#[pyfunction]
pub(crate) fn range_tag(own: &str, key: &str, windows: Vec<(String, PyBackedBytes)>) -> String {
    let tag = windows.iter().fold(RangeTag::new(own, key), |tag, (key, body)| tag.with(key, body));
    tag.to_string()
}

/// The lines of a window.
#[pyfunction]
pub(crate) fn window_lines<'py>(
    py: Python<'py>,
    start: &str,
    end: &str,
    is_settled: bool,
    body: &[u8],
) -> Result<Bound<'py, PyBytes>> {
    let window = Window::parse(start, end)?;
    let lines = tallyfold::window_lines(window, is_settled, body);
    Ok(PyBytes::new(py, &lines))
}

/// The line of a window whose call has failed.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the window and all parts of an error")]
pub(crate) fn failed_line<'py>(
    py: Python<'py>,
    start: &str,
    end: &str,
    code: &str,
    status: Option<u16>,
    message: String,
    retry_after: Option<u64>,
    reference: &str,
) -> Result<Bound<'py, PyBytes>> {
    let window = Window::parse(start, end)?;
    let code = code_of(code);
    let line = tallyfold::failed_line(window, code, status, message, retry_after, reference);
    Ok(PyBytes::new(py, &line))
}

/// The last line of the answer with a range.
#[pyfunction]
pub(crate) fn last_line(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, tallyfold::LAST_LINE)
}

fn parts(py: Python<'_>, answer: Answer) -> PyResult<Bound<'_, PyAny>> {
    let body = PyBytes::new(py, &answer.body);
    let all = (answer.status, answer.headers, body).into_pyobject(py)?;
    Ok(all.into_any())
}

/// The bytes to store under a key: a checksum and the body.
#[pyfunction]
pub(crate) fn sealed<'py>(py: Python<'py>, key: &str, body: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &tallyfold::sealed(key, body))
}

/// The body in bytes that were stored under a key; `None` if they were changed or stored under another key.
#[pyfunction]
pub(crate) fn unsealed<'py>(
    py: Python<'py>,
    key: &str,
    kept: &[u8],
) -> Option<Bound<'py, PyBytes>> {
    tallyfold::unsealed(key, kept).map(|body| PyBytes::new(py, body))
}
