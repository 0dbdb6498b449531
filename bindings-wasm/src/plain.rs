//! Converts plain values to JavaScript with serde. A `u64` becomes a `bigint`, `None` becomes `undefined`, and a struct
//! becomes an object with names in camelCase.

use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

const SERIALIZER: Serializer =
    Serializer::new().serialize_large_number_types_as_bigints(true).serialize_maps_as_objects(true);

/// The value in JavaScript.
pub(crate) fn plain<T: Serialize + ?Sized>(value: &T) -> JsValue {
    // Only a value that JavaScript can't represent fails, and no such value is passed.
    value.serialize(&SERIALIZER).unwrap_or(JsValue::UNDEFINED)
}
