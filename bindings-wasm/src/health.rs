//! [`tallyfold_health`]: what explains a change.

use tallyfold_health::{ExplainOptions, Measure};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{options, required};
use crate::error::Result;
use crate::plain::plain;
use crate::rows::Rows;

/// A table, handed over from the memory of the library.
#[wasm_bindgen(js_name = CoreTable)]
pub struct Table(tallyfold::CountTable);

#[wasm_bindgen(js_class = CoreTable)]
impl Table {
    /// Of its rows by window, and the JSON of its grand totals.
    #[wasm_bindgen(constructor)]
    pub fn new(rows: Rows, totals: &str) -> Result<Self> {
        Ok(Self(rows.table(totals)?))
    }
}

/// What explains the change from one table to another, with the facade's options.
#[wasm_bindgen(js_name = explainChange)]
pub fn explain_change(
    before: &Table,
    now: &Table,
    measure: &JsValue,
    given: &JsValue,
) -> Result<JsValue> {
    let measure: Measure = required("measure", measure)?;
    let options: ExplainOptions = options("options", given, &[])?;
    let explained = tallyfold_health::explain(&before.0, &now.0, measure, &options)?;
    Ok(plain(&explained))
}
