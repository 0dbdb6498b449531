//! Reads what the host provides: the time, random numbers, and headers.

use tallyfold::Now;
use wasm_bindgen::JsValue;

use crate::arguments::Fields;
use crate::error::{Result, Thrown};

/// Reads the time of both clocks.
pub(crate) fn now(now: &JsValue) -> Result<Now> {
    let now = Fields::of("now", now)?;
    let reading = |name| {
        let value = now.get(name)?.as_f64().filter(|value| value.is_finite());
        let want = "want { monotonicMs, unixMs }, both finite numbers";
        value.ok_or_else(|| Thrown::refused("now", want))
    };
    Ok(Now { monotonic_ms: reading("monotonicMs")? as u64, unix_ms: reading("unixMs")? as i64 })
}

/// A random seed.
pub(crate) fn random_seed() -> u64 {
    js_sys::Math::random().to_bits()
}

/// Pairs of headers from a flat array of alternating names and values.
pub(crate) fn headers(flat: &[String]) -> Vec<(&str, &str)> {
    flat.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect()
}
