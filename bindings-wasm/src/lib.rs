//! The WebAssembly binding: newtypes that delegate to the core crate, one module per concept.

use wasm_bindgen::prelude::wasm_bindgen;

/// The version of this package.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
