//! What the core gives, as plain values of JavaScript.

use js_sys::{Array, BigUint64Array, Object, Reflect, Uint8Array, Uint32Array};
use tallyfold::{
    Column, Counts, Notes, Output, Reconciliation, Request, Row, SandboxOptions, SandboxResponse,
    SandboxStats, Step, Window,
};
use wasm_bindgen::JsValue;

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

pub(crate) fn counts(counts: Counts) -> JsValue {
    object([
        ("success", counts.success.into()),
        ("errors", counts.errors.into()),
        ("filtered", counts.filtered.into()),
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
    array(windows.iter().map(|window| {
        object([
            ("start", window.start().to_string().into()),
            ("end", window.end().to_string().into()),
        ])
    }))
}

pub(crate) fn notes(notes: Notes) -> JsValue {
    object([
        ("repeatedCombinations", notes.repeated_combinations.into()),
        ("nullDimensions", notes.null_dimensions.into()),
    ])
}

pub(crate) fn row(names: &[&str], row: Row<'_>) -> JsValue {
    let dimensions = Object::new();
    for (name, value) in names.iter().zip(row.values()) {
        _ = Reflect::set(&dimensions, &(*name).into(), &value.into());
    }
    let Counts {
        success,
        errors,
        filtered,
    } = row.counts();
    object([
        ("dimensions", dimensions.into()),
        ("success", success.into()),
        ("errors", errors.into()),
        ("filtered", filtered.into()),
    ])
}

/// Copies, so that no growth of the wasm memory detaches them.
pub(crate) fn dimension_column(column: Column<'_>) -> JsValue {
    let dictionary: Array = column.dictionary.values().map(JsValue::from_str).collect();
    object([
        ("dictionary", dictionary.into()),
        ("ids", Uint32Array::from(column.ids).into()),
    ])
}

pub(crate) fn indexes(indexes: &[usize]) -> Array {
    array(indexes.iter().map(|index| JsValue::from(*index)))
}

/// A copy, so that no growth of the wasm memory detaches it.
pub(crate) fn column(column: &[u64]) -> BigUint64Array {
    BigUint64Array::from(column)
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
        Step::Done => object([("type", "done".into())]),
    }
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
