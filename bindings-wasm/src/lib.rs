//! The WebAssembly binding: newtypes that delegate to the core crate, one module per concept.
//!
//! Only the TypeScript facade in `../js/src` calls it; documentation for users is there. [`arguments`] reads arguments,
//! [`plain`] converts plain values, and [`error`] converts errors.
//!
//! Six WebAssembly modules are built from it, one for each feature: the library; the sandbox, which most pages don't need;
//! the parts that only a server for web apps needs; exports to other systems; health, which judges counts; and
//! notifications of its findings.
#![cfg_attr(
    not(all(
        feature = "library",
        feature = "sandbox",
        feature = "pages",
        feature = "export",
        feature = "health",
        feature = "notify"
    )),
    allow(dead_code, unused_imports, reason = "the other module uses it")
)]

#[cfg(feature = "library")]
pub mod aggregator;
mod arguments;
#[cfg(feature = "library")]
pub mod call;
#[cfg(feature = "library")]
pub mod comparison;
pub mod error;
#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "library")]
mod frame;
#[cfg(feature = "health")]
pub mod health;
mod host;
#[cfg(feature = "library")]
pub mod lease;
#[cfg(feature = "export")]
pub mod ledger;
#[cfg(feature = "library")]
pub mod machine;
#[cfg(feature = "notify")]
pub mod notify;
#[cfg(feature = "export")]
pub mod outbox;
#[cfg(feature = "pages")]
pub mod pages;
mod plain;
#[cfg(feature = "library")]
pub mod plan;
#[cfg(feature = "export")]
pub mod push;
#[cfg(feature = "library")]
pub mod ranges;
#[cfg(any(feature = "export", feature = "health"))]
pub mod rows;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(any(feature = "export", feature = "notify"))]
mod sending;
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

/// The allocator that the standard library has for WebAssembly, but compiled for speed, because reading a body of 1 kB calls
/// it sixty times.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

/// The version of this package.
#[cfg(feature = "library")]
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The rates of counts: delivery, error and filter. NaN means that there is no rate.
#[cfg(feature = "library")]
#[wasm_bindgen]
pub fn rates(success: u64, errors: u64, filtered: u64) -> error::Returned<Float64Array> {
    let counts = Counts { success, errors, filtered };
    let rates = counts.rates().each().map(|rate| rate.unwrap_or(f64::NAN));
    Ok(Float64Array::from(rates.as_slice()))
}
