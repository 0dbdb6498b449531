//! What the core gives, as plain values of JavaScript.

use js_sys::{Array, BigUint64Array, Float64Array, Object, Reflect, Uint8Array, Uint32Array};
use tallyfold::{
    Attempt, Code, Column, ComparisonRow, Counts, Deltas, Dimensions, Metric, Notes, Output,
    Presence, Reconciliation, Request, SandboxOptions, SandboxResponse, SandboxStats, SeriesWindow,
    Step, Window,
};
use wasm_bindgen::JsValue;

#[cfg(feature = "library")]
use crate::table::CountTable;

/// A plain object; a field that is undefined is left out.
pub(crate) fn object<const N: usize>(fields: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_undefined()) {
        // A fresh object takes every field.
        _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

pub(crate) fn array(values: impl Iterator<Item = JsValue>) -> Array {
    values.collect()
}

pub(crate) fn names(dimensions: &Dimensions) -> Array {
    array(dimensions.names().into_iter().map(JsValue::from))
}

pub(crate) fn metric(metric: Option<Metric>) -> Option<String> {
    metric.map(|metric| metric.as_str().to_owned())
}

/// The three counts in their order.
pub(crate) fn counts(counts: Counts) -> BigUint64Array {
    column(&each(counts))
}

fn each(counts: Counts) -> [u64; 3] {
    [counts.success, counts.errors, counts.filtered]
}

pub(crate) fn deltas(deltas: Deltas) -> JsValue {
    object([
        ("success", deltas.success.into()),
        ("errors", deltas.errors.into()),
        ("filtered", deltas.filtered.into()),
    ])
}

pub(crate) fn reconciliation(reconciliation: &Reconciliation) -> JsValue {
    match *reconciliation {
        Reconciliation::Balanced => object([("verdict", "balanced".into())]),
        Reconciliation::Unavailable => object([("verdict", "unavailable".into())]),
        Reconciliation::Unbalanced {
            success,
            errors,
            filtered,
        } => object([
            ("verdict", "unbalanced".into()),
            ("success", success.into()),
            ("errors", errors.into()),
            ("filtered", filtered.into()),
        ]),
    }
}

pub(crate) fn windows(windows: &[Window]) -> Array {
    array(windows.iter().map(|of| window(*of)))
}

pub(crate) fn series_windows(windows: &[SeriesWindow]) -> Array {
    array(
        windows
            .iter()
            .map(|of| edges(of.window, of.complete.into())),
    )
}

pub(crate) fn window(window: Window) -> JsValue {
    edges(window, JsValue::UNDEFINED)
}

fn edges(window: Window, complete: JsValue) -> JsValue {
    object([
        ("start", window.start().to_string().into()),
        ("end", window.end().to_string().into()),
        ("complete", complete),
    ])
}

pub(crate) fn notes(notes: Notes) -> JsValue {
    object([
        ("repeatedCombinations", notes.repeated_combinations.into()),
        ("nullDimensions", notes.null_dimensions.into()),
    ])
}

/// One row: its values, then its counts.
pub(crate) fn cells<'a>(values: impl Iterator<Item = &'a str>, counts: &[Counts]) -> Array {
    let counts = counts.iter().copied().flat_map(each);
    values
        .map(JsValue::from_str)
        .chain(counts.map(JsValue::from))
        .collect()
}

pub(crate) fn dimension_column(column: Column<'_>) -> JsValue {
    dictionary_column(column.dictionary.values(), column.ids)
}

pub(crate) fn presences(presences: &[Presence]) -> JsValue {
    let all = [Presence::Both, Presence::New, Presence::Vanished];
    let ids: Vec<u32> = presences.iter().map(|of| *of as u32).collect();
    dictionary_column(all.into_iter().map(Presence::as_str), &ids)
}

/// Copies, so that no growth of the wasm memory detaches them.
fn dictionary_column<'a>(values: impl Iterator<Item = &'a str>, ids: &[u32]) -> JsValue {
    object([
        ("dictionary", array(values.map(JsValue::from_str)).into()),
        ("ids", Uint32Array::from(ids).into()),
    ])
}

pub(crate) fn count_columns(columns: [&[u64]; 3]) -> Array {
    array(columns.into_iter().map(|values| column(values).into()))
}

/// A copy, so that no growth of the wasm memory detaches it.
fn column(column: &[u64]) -> BigUint64Array {
    BigUint64Array::from(column)
}

/// Delivery, error and filter rate.
pub(crate) fn rates(counts: Counts) -> [f64; 3] {
    let rates = counts.rates();
    floats([rates.delivery, rates.error, rates.filter])
}

pub(crate) fn shares(row: ComparisonRow<'_>) -> [f64; 3] {
    let shares = row.share();
    floats([shares.success, shares.errors, shares.filtered])
}

/// NaN where there is none, as typed arrays have nothing else.
fn floats(values: [Option<f64>; 3]) -> [f64; 3] {
    values.map(|value| value.unwrap_or(f64::NAN))
}

pub(crate) fn float_columns(rows: impl ExactSizeIterator<Item = [f64; 3]>) -> Array {
    let mut columns = [(); 3].map(|()| Vec::with_capacity(rows.len()));
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    array(
        columns
            .iter()
            .map(|of| Float64Array::from(of.as_slice()).into()),
    )
}

fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}

pub(crate) fn step(step: Step) -> JsValue {
    match step {
        Step::Send(request) => object([
            ("type", "send".into()),
            ("request", request_fields(&request)),
        ]),
        Step::ProvideToken { api } => object([
            ("type", "provideToken".into()),
            ("api", api.as_str().into()),
        ]),
        Step::Blocked { epoch } => object([("type", "blocked".into()), ("epoch", epoch.into())]),
        Step::Wait { ms } => object([("type", "wait".into()), ("ms", (ms as f64).into())]),
        Step::Done => object([("type", "done".into())]),
    }
}

pub(crate) fn attempt(attempt: &Attempt) -> JsValue {
    object([
        ("target", attempt.target.as_str().into()),
        ("window", attempt.window.map(window).into()),
        ("number", attempt.number.into()),
        ("status", attempt.status.into()),
        ("code", attempt.code.map(Code::as_str).into()),
        ("waitMs", attempt.wait_ms.map(|ms| ms as f64).into()),
    ])
}

fn request_fields(request: &Request) -> JsValue {
    let headers = request
        .headers()
        .flat_map(|(name, value)| [name.into(), value.into()]);
    object([
        ("method", request.method().into()),
        ("url", request.url().into()),
        ("headers", array(headers).into()),
        ("body", request.body().map(bytes).into()),
    ])
}

#[cfg(feature = "library")]
pub(crate) fn output(output: Output) -> JsValue {
    match output {
        Output::Table(table) => CountTable::from(table).into(),
        Output::Json(bytes) => String::from_utf8_lossy(&bytes).as_ref().into(),
    }
}

pub(crate) fn credentials(options: &SandboxOptions) -> JsValue {
    object([
        ("clientId", options.client_id.as_str().into()),
        ("clientSecret", options.client_secret.expose().into()),
        ("controlAudience", options.control_audience.as_str().into()),
        (
            "orchestrationAudience",
            options.orchestration_audience.as_str().into(),
        ),
    ])
}

pub(crate) fn response(response: &SandboxResponse) -> JsValue {
    let pair = |(name, value): &(String, String)| {
        array([name.as_str().into(), value.as_str().into()].into_iter()).into()
    };
    object([
        ("status", response.status.into()),
        ("headers", array(response.headers.iter().map(pair)).into()),
        ("body", bytes(&response.body).into()),
        ("delayMs", (response.delay_ms as f64).into()),
        ("cutAt", response.cut_at.into()),
    ])
}

pub(crate) fn stats(stats: SandboxStats) -> JsValue {
    object([
        ("control_token", (stats.control_token as f64).into()),
        (
            "orchestration_token",
            (stats.orchestration_token as f64).into(),
        ),
        ("event_delivery", (stats.event_delivery as f64).into()),
        ("event_ingestion", (stats.event_ingestion as f64).into()),
        ("audit_logs", (stats.audit_logs as f64).into()),
    ])
}
