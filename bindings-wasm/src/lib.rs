//! The WebAssembly binding: newtypes that delegate to the core crate, one module per concept.
//!
//! Only the TypeScript facade in `../js/src` calls it, so what it returns are plain values;
//! documentation for users stands there.

pub mod aggregator;
pub mod client;
pub mod comparison;
mod convert;
pub mod error;
pub mod sandbox;
pub mod series;
pub mod staging;
pub mod table;

use dlmalloc::GlobalDlmalloc;
use js_sys::Float64Array;
use tallyfold::Counts;
use wasm_bindgen::prelude::wasm_bindgen;

/// The allocator that the standard library has for WebAssembly, but compiled for speed: a body of
/// 1 kB asks it sixty times.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

/// The version of this package.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Every error code, in the order of the core's documentation.
#[wasm_bindgen(js_name = errorCodes)]
#[must_use]
pub fn error_codes() -> Vec<String> {
    tallyfold::Code::ALL
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The rates of counts: delivery, error and filter.
#[wasm_bindgen]
#[must_use]
pub fn rates(success: u64, errors: u64, filtered: u64) -> Float64Array {
    let counts = Counts {
        success,
        errors,
        filtered,
    };
    Float64Array::from(convert::rates(counts).as_slice())
}
