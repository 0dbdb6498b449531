//! What a server for pages asks the core.

use js_sys::{Array, Float64Array};
use serde::Serialize;
use tallyfold::{Answer, Code, Dimension, PageQuestion, PageRequest, PagesOptions, Timestamp};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::options;
use crate::error::{Returned, Thrown};
use crate::host;
use crate::plain::plain;

/// What the host does with the options: for how many milliseconds it keeps provisional answers, how many calls it
/// makes at the same time, how many bytes it keeps, and how many calls may wait.
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
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Question {
    Metrics {
        metric: &'static str,
        start: Timestamp,
        end: Timestamp,
        dimensions: Vec<Dimension>,
        key: String,
        is_settled: bool,
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

/// What a page asks. Its request is given as the method, the target, the body, and names and values of the headers
/// in turn.
#[wasm_bindgen(js_name = pageQuestion)]
pub fn page_question(
    given: &JsValue,
    service: &str,
    asked: Vec<String>,
    is_allowed: bool,
    now: &JsValue,
) -> Result<JsValue, Thrown> {
    let [method, target, body, headers @ ..] = &*asked else {
        return Err(Thrown::missing("request"));
    };
    let request = PageRequest {
        method,
        target,
        headers: &host::headers(headers),
        body: body.as_bytes(),
        is_allowed,
    };
    let pages: PagesOptions = options("options", given, &[])?;
    let question = PageQuestion::read(&pages, service, request, host::now(now)?)?;
    Ok(plain(&match question {
        PageQuestion::Metrics {
            metric,
            query,
            key,
            is_settled,
        } => Question::Metrics {
            metric: metric.as_str(),
            start: query.start,
            end: query.end,
            dimensions: query.dimensions,
            key,
            is_settled,
        },
        PageQuestion::Token(api) => Question::Token { api: api.as_str() },
        PageQuestion::AuditLogs(logs) => Question::AuditLogs {
            page: logs.page.map(|page| page as f64),
            per_page: logs.per_page.map(|size| size as f64),
        },
    }))
}

/// The answer with a document: the status, the body, and names and values of the headers in turn.
#[wasm_bindgen(js_name = goodAnswer)]
pub fn good_answer(body: String) -> Returned<Array> {
    Ok(parts(Answer::good(body.into_bytes())))
}

/// The answer with an error.
#[wasm_bindgen(js_name = failedAnswer)]
pub fn failed_answer(
    code: &str,
    status: Option<u16>,
    message: String,
    retry_after: Option<f64>,
    reference: Option<String>,
) -> Returned<Array> {
    let known = Code::ALL.iter().find(|known| known.as_str() == code);
    let retry_after_s = retry_after.map(|seconds| seconds as u64);
    let code = known.copied().unwrap_or(Code::UnexpectedStatus);
    Ok(parts(match reference {
        None => Answer::failed(code, status, message, retry_after_s),
        Some(reference) => Answer::failed_inside(code, status, message, retry_after_s, &reference),
    }))
}

/// The answer when too many requests wait already.
#[wasm_bindgen(js_name = busyAnswer)]
pub fn busy_answer(retry_after: f64) -> Returned<Array> {
    Ok(parts(Answer::busy(retry_after as u64)))
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

/// The text to keep under a key.
#[wasm_bindgen]
#[must_use]
pub fn sealed(key: &str, body: &str) -> String {
    String::from_utf8(tallyfold::sealed(key, body.as_bytes())).unwrap_or_default()
}

/// The answer in a text that was kept under that key, if it is whole.
#[wasm_bindgen]
#[must_use]
pub fn unsealed(key: &str, kept: &str) -> Option<String> {
    let body = tallyfold::unsealed(key, kept.as_bytes())?;
    str::from_utf8(body).ok().map(str::to_owned)
}
