//! The functions of the core for a server for web apps.

use std::sync::Arc;

use js_sys::{Array, Float64Array, Uint8Array};
use serde::Serialize;
use tallyfold::{
    Answer, Code, Dimension, MetricsQuestion, PageQuestion, PageRequest, PagesOptions, Permission,
    QueryOptions, RangeTag, Timestamp, Window, WindowsQuestion,
};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Absent, options, required, values_by_name};
use crate::error::{Returned, Thrown};
use crate::host;
use crate::plain::plain;

/// Checks the options, and returns the numbers that the host needs: how many milliseconds to keep provisional responses, how
/// many calls to make at the same time, how many bytes to keep, and how many calls may wait.
#[wasm_bindgen(js_name = pagesOptions)]
pub fn pages_options(given: &JsValue) -> Result<Float64Array, Thrown> {
    let pages: PagesOptions = options("options", given, &[])?;
    pages.check()?;
    let numbers = [
        pages.provisional_ms as f64,
        f64::from(pages.concurrency),
        pages.memory_bytes as f64,
        f64::from(pages.queue),
    ];
    Ok(Float64Array::from(numbers.as_slice()))
}

/// [`PageQuestion`].
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Question {
    Metrics(Metrics),
    Windows {
        windows: Vec<Metrics>,
        key: String,
    },
    Token {
        api: &'static str,
    },
    AuditLogs {
        #[serde(skip_serializing_if = "Option::is_none")]
        page: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        per_page: Option<f64>,
    },
}

/// [`MetricsQuestion`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    metric: &'static str,
    start: Timestamp,
    end: Timestamp,
    dimensions: Vec<Dimension>,
    #[serde(skip_serializing_if = "Option::is_none")]
    narrowed_to: Option<Vec<Dimension>>,
    key: String,
    is_settled: bool,
}

impl From<MetricsQuestion> for Metrics {
    fn from(question: MetricsQuestion) -> Self {
        Self {
            metric: question.metric.as_str(),
            start: question.query.start,
            end: question.query.end,
            dimensions: question.query.dimensions,
            narrowed_to: question.narrowed_to,
            key: question.key,
            is_settled: question.is_settled,
        }
    }
}

/// The rows that a user may see.
#[wasm_bindgen(js_name = CoreVisibleRows)]
pub struct VisibleRows(Arc<tallyfold::VisibleRows>);

#[wasm_bindgen(js_class = CoreVisibleRows)]
impl VisibleRows {
    /// Reads an object with a string or an array of strings for each dimension. A property without a value is an error, because
    /// the user would see more without it.
    #[wasm_bindgen(constructor)]
    pub fn new(values: &JsValue) -> Result<Self, Thrown> {
        let values = values_by_name("authorize", values, Absent::Refused)?;
        Ok(Self(Arc::new(tallyfold::VisibleRows::new(&values)?)))
    }

    /// Another handle, for a function that consumes it.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// The part that a web app gets of the body that the service has sent for `dimensions`. `asked` are the dimensions that the
    /// web app has requested.
    pub fn narrow(
        &self,
        start: &str,
        end: &str,
        dimensions: &JsValue,
        asked: &JsValue,
        body: &[u8],
    ) -> Result<Uint8Array, Thrown> {
        let dimensions: Vec<Dimension> = required("dimensions", dimensions)?;
        let asked: Vec<Dimension> = required("dimensions", asked)?;
        let query = QueryOptions::new(Window::parse(start, end)?, &dimensions);
        let narrowed = self.0.narrow(&query, &asked, body, host::random_seed())?;
        Ok(bytes(&narrowed))
    }
}

/// Reads the request of a web app. `asked` is the method, the target, the body, and alternating names and values of the
/// headers. With `rows`, the web app gets only these rows.
#[wasm_bindgen(js_name = pageQuestion)]
pub fn page_question(
    given: &JsValue,
    service: &str,
    asked: Vec<String>,
    is_allowed: bool,
    rows: Option<VisibleRows>,
    now: &JsValue,
) -> Result<JsValue, Thrown> {
    let [method, target, body, headers @ ..] = &*asked else {
        return Err(Thrown::missing("request"));
    };
    let permission = match rows {
        _ if !is_allowed => Permission::Refused,
        Some(rows) => Permission::Only(Arc::clone(&rows.0)),
        None => Permission::Everything,
    };
    let request = PageRequest {
        method,
        target,
        headers: &host::headers(headers),
        body: body.as_bytes(),
        permission: &permission,
    };
    let pages: PagesOptions = options("options", given, &[])?;
    let question = PageQuestion::read(&pages, service, request, host::now(now)?)?;
    Ok(plain(&match question {
        PageQuestion::Metrics(question) => Question::Metrics(question.into()),
        PageQuestion::Windows(WindowsQuestion { windows, key }) => {
            Question::Windows { windows: windows.into_iter().map(Metrics::from).collect(), key }
        }
        PageQuestion::Token(api) => Question::Token { api: api.as_str() },
        PageQuestion::AuditLogs(logs) => Question::AuditLogs {
            page: logs.page.map(|page| page as f64),
            per_page: logs.per_page.map(|size| size as f64),
        },
    }))
}

/// The response with a document: the status, the body, and alternating names and values of the headers.
#[wasm_bindgen(js_name = goodAnswer)]
pub fn good_answer(body: String) -> Returned<Array> {
    Ok(parts(Answer::good(body.into_bytes())))
}

/// The response with an error.
#[wasm_bindgen(js_name = failedAnswer)]
pub fn failed_answer(
    code: &str,
    status: Option<u16>,
    message: String,
    retry_after: Option<f64>,
    reference: Option<String>,
) -> Returned<Array> {
    let retry_after_s = retry_after.map(|seconds| seconds as u64);
    let code = code_of(code);
    Ok(parts(match reference {
        None => Answer::failed(code, status, message, retry_after_s),
        Some(reference) => Answer::failed_inside(code, status, message, retry_after_s, &reference),
    }))
}

/// The response if too many requests are waiting already.
#[wasm_bindgen(js_name = busyAnswer)]
pub fn busy_answer(retry_after: f64) -> Returned<Array> {
    Ok(parts(Answer::busy(retry_after as u64)))
}

fn code_of(name: &str) -> Code {
    Code::from_name(name).unwrap_or(Code::UnexpectedStatus)
}

/// The status and headers of the response with a range, or 304 if the header `if-none-match` of the request contains its tag.
/// Without a tag, the browser does not keep the response.
#[wasm_bindgen(js_name = rangeAnswer)]
pub fn range_answer(tag: Option<String>, if_none_match: Option<String>) -> Returned<Array> {
    let tag = tag.map(RangeTag::resume);
    Ok(parts(Answer::of_range(tag.as_ref(), if_none_match.as_deref())))
}

/// The tag of a range.
#[wasm_bindgen(js_name = rangeTag)]
#[must_use]
pub fn range_tag(own: &str, key: &str) -> String {
    RangeTag::new(own, key).to_string()
}

/// The tag with one more window that is not settled.
#[wasm_bindgen(js_name = rangeTagWith)]
#[must_use]
pub fn range_tag_with(tag: String, key: &str, body: &[u8]) -> String {
    RangeTag::resume(tag).with(key, body).to_string()
}

/// The lines of a window.
#[wasm_bindgen(js_name = windowLines)]
pub fn window_lines(
    start: &str,
    end: &str,
    is_settled: bool,
    body: &[u8],
) -> Result<Uint8Array, Thrown> {
    let window = Window::parse(start, end)?;
    Ok(bytes(&tallyfold::window_lines(window, is_settled, body)))
}

/// The line of a window whose call has failed.
#[wasm_bindgen(js_name = failedLine)]
pub fn failed_line(
    start: &str,
    end: &str,
    code: &str,
    status: Option<u16>,
    message: String,
    retry_after: Option<f64>,
    reference: &str,
) -> Result<Uint8Array, Thrown> {
    let window = Window::parse(start, end)?;
    let seconds = retry_after.map(|seconds| seconds as u64);
    let code = code_of(code);
    let line = tallyfold::failed_line(window, code, status, message, seconds, reference);
    Ok(bytes(&line))
}

/// The last line of the response with a range.
#[wasm_bindgen(js_name = lastLine)]
pub fn last_line() -> Returned<Uint8Array> {
    Ok(bytes(tallyfold::LAST_LINE))
}

fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}

fn parts(answer: Answer) -> Array {
    let body = String::from_utf8(answer.body).unwrap_or_default();
    let parts = Array::of2(&answer.status.into(), &body.into());
    for (name, value) in answer.headers {
        parts.push(&name.into());
        parts.push(&value.into());
    }
    parts
}

/// The text to store under a key.
#[wasm_bindgen]
#[must_use]
pub fn sealed(key: &str, body: &str) -> String {
    String::from_utf8(tallyfold::sealed(key, body.as_bytes())).unwrap_or_default()
}

/// The response in a text that was stored under this key; `None` if the text is incomplete or was changed, or was stored under
/// another key.
#[wasm_bindgen]
#[must_use]
pub fn unsealed(key: &str, kept: &str) -> Option<String> {
    let body = tallyfold::unsealed(key, kept.as_bytes())?;
    str::from_utf8(body).ok().map(str::to_owned)
}
