//! The WebAssembly binding: newtypes that delegate to the core crate, one module per concept.
//!
//! Only the TypeScript facade in `../js/src` calls it, so what it returns are plain values;
//! documentation for users stands there.
//!
//! Two modules are made of it, by feature: the library, and the sandbox, which most pages do without.
#![cfg_attr(
    not(all(feature = "library", feature = "sandbox")),
    allow(dead_code, unused_imports, reason = "the other module uses it")
)]

#[cfg(feature = "library")]
pub mod aggregator;
#[cfg(feature = "library")]
pub mod client;
#[cfg(feature = "library")]
pub mod collect;
#[cfg(feature = "library")]
pub mod comparison;
mod convert;
pub mod error;
#[cfg(feature = "library")]
pub mod follow;
#[cfg(feature = "library")]
pub mod plan;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(feature = "library")]
pub mod series;
#[cfg(feature = "library")]
pub mod staging;
#[cfg(feature = "library")]
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
#[cfg(feature = "library")]
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Every error code, in the order of the core's documentation.
#[cfg(feature = "library")]
#[wasm_bindgen(js_name = errorCodes)]
#[must_use]
pub fn error_codes() -> Vec<String> {
    tallyfold::Code::ALL
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The rates of counts: delivery, error and filter.
#[cfg(feature = "library")]
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
