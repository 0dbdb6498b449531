//! How plain values cross into JavaScript: by serde, for all of them alike. A `u64` is a `bigint`, what is
//! missing is `undefined`, and a struct is an object whose names are in camelCase.

use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

const SERIALIZER: Serializer = Serializer::new()
    .serialize_large_number_types_as_bigints(true)
    .serialize_maps_as_objects(true);

/// The value in JavaScript.
pub(crate) fn plain<T: Serialize + ?Sized>(value: &T) -> JsValue {
    // Only what has no form in JavaScript fails, and nothing of that kind is handed in.
    value.serialize(&SERIALIZER).unwrap_or(JsValue::UNDEFINED)
}
