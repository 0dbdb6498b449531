//! [`tallyfold::CountTable`].

use js_sys::{Array, BigUint64Array};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;
use crate::error::Thrown;

/// Counts per combination of dimension values.
#[wasm_bindgen(js_name = CoreCountTable)]
pub struct CountTable(tallyfold::CountTable);

impl From<tallyfold::CountTable> for CountTable {
    fn from(table: tallyfold::CountTable) -> Self {
        Self(table)
    }
}

#[wasm_bindgen(js_class = CoreCountTable)]
impl CountTable {
    /// Names of the dimensions.
    pub fn dimensions(&self) -> Array {
        convert::array(self.0.dimensions().names().into_iter().map(JsValue::from))
    }

    /// Name of the metric, if known.
    pub fn metric(&self) -> Option<String> {
        self.0.metric().map(|metric| metric.as_str().to_owned())
    }

    /// Sum over all rows.
    pub fn totals(&self) -> JsValue {
        convert::counts(self.0.totals())
    }

    /// Totals as the service said.
    pub fn reported(&self) -> JsValue {
        self.0
            .reported()
            .map_or(JsValue::UNDEFINED, convert::counts)
    }

    /// Reported minus summed.
    pub fn reconciliation(&self) -> JsValue {
        convert::reconciliation(&self.0.reconciliation())
    }

    /// Windows, joined where they meet.
    pub fn coverage(&self) -> Array {
        convert::windows(&self.0.coverage())
    }

    /// Windows as fetched.
    pub fn windows(&self) -> Array {
        convert::windows(&self.0.windows())
    }

    /// What was tolerated.
    pub fn notes(&self) -> JsValue {
        convert::notes(self.0.notes())
    }

    /// Number of rows.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// One row, or undefined.
    pub fn row(&self, index: usize) -> JsValue {
        let names = self.0.dimensions().names();
        self.0
            .row(index)
            .map_or(JsValue::UNDEFINED, |row| convert::row(&names, row))
    }

    /// Regrouped by some of the dimensions.
    #[wasm_bindgen(js_name = groupBy)]
    pub fn group_by(&self, names: &JsValue) -> Result<Self, Thrown> {
        Ok(Self(self.0.group_by(&convert::strings("groupBy", names)?)?))
    }

    /// Only the rows that match.
    pub fn filter(&self, conditions: &JsValue) -> Result<Self, Thrown> {
        Ok(Self(self.0.filter(&convert::conditions(conditions)?)?))
    }

    /// Indexes of the rows with the highest counts.
    pub fn top(&self, n: &JsValue, by: &JsValue) -> Result<Array, Thrown> {
        let indexes = self
            .0
            .top(convert::size("n", n)?, &convert::string("by", by)?)?;
        Ok(convert::indexes(&indexes))
    }

    /// Joined with another table.
    pub fn merge(&self, other: &Self, replace: bool) -> Result<Self, Thrown> {
        Ok(Self(self.0.merge(&other.0, replace)?))
    }

    /// As JSON text.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// From JSON text.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &JsValue) -> Result<Self, Thrown> {
        let text = convert::string("table", text)?;
        Ok(Self(tallyfold::CountTable::from_json(text.as_bytes())?))
    }

    /// Per dimension, its distinct values and, per row, which one it is.
    #[wasm_bindgen(js_name = dimensionColumns)]
    pub fn dimension_columns(&self) -> Array {
        convert::array(self.0.columns().map(convert::dimension_column))
    }

    /// Events delivered, per row.
    pub fn success(&self) -> BigUint64Array {
        convert::column(self.0.success())
    }

    /// Events not sent due to an error, per row.
    pub fn errors(&self) -> BigUint64Array {
        convert::column(self.0.errors())
    }

    /// Events filtered, per row.
    pub fn filtered(&self) -> BigUint64Array {
        convert::column(self.0.filtered())
    }
}
