//! [`tallyfold::CountTable`].

use js_sys::{Array, BigUint64Array};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::comparison::Comparison;
use crate::convert::{self, Fields};
use crate::error::Thrown;
use crate::series::Series;

/// Counts per combination of dimension values.
#[wasm_bindgen(js_name = CoreCountTable)]
pub struct CountTable(tallyfold::CountTable);

impl From<tallyfold::CountTable> for CountTable {
    fn from(table: tallyfold::CountTable) -> Self {
        Self(table)
    }
}

impl From<CountTable> for tallyfold::CountTable {
    fn from(table: CountTable) -> Self {
        table.0
    }
}

#[wasm_bindgen(js_class = CoreCountTable)]
impl CountTable {
    /// Names of the dimensions.
    pub fn dimensions(&self) -> Array {
        convert::names(self.0.dimensions())
    }

    /// Name of the metric, if known.
    pub fn metric(&self) -> Option<String> {
        convert::metric(self.0.metric())
    }

    /// Sum over all rows.
    pub fn totals(&self) -> BigUint64Array {
        convert::counts(self.0.totals())
    }

    /// Totals as the service said.
    pub fn reported(&self) -> Option<BigUint64Array> {
        self.0.reported().map(convert::counts)
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

    /// Regrouped by some of the dimensions.
    #[wasm_bindgen(js_name = groupBy)]
    pub fn group_by(&self, names: &JsValue) -> Result<Self, Thrown> {
        Ok(Self(self.0.group_by(&convert::strings("groupBy", names)?)?))
    }

    /// Only the rows that match.
    pub fn filter(&self, conditions: &JsValue) -> Result<Self, Thrown> {
        Ok(Self(self.0.filter(&convert::conditions(conditions)?)?))
    }

    /// The rows with the highest counts, each as its values and counts.
    pub fn top(&self, n: &JsValue, by: &JsValue) -> Result<Array, Thrown> {
        let positions = self
            .0
            .top(convert::size("n", n)?, &convert::string("by", by)?)?;
        let rows = positions.into_iter().filter_map(|at| self.0.row(at));
        Ok(convert::array(rows.map(|row| {
            convert::cells(row.values(), &[row.counts()]).into()
        })))
    }

    /// By window.
    #[wasm_bindgen(js_name = byWindow)]
    pub fn by_window(&self, step: &JsValue) -> Result<Series, Thrown> {
        Ok(self.0.by_window(convert::time_step(step)?)?.into())
    }

    /// What changed from this table to another.
    pub fn compare(&self, after: &Self) -> Result<Comparison, Thrown> {
        Ok(tallyfold::compare(&self.0, &after.0)?.into())
    }

    /// Joined with another table.
    pub fn merge(&self, other: &Self, replace: bool) -> Result<Self, Thrown> {
        Ok(Self(self.0.merge(&other.0, replace)?))
    }

    /// Another handle of this table, to be handed over.
    pub fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// All tables added up at once.
    #[wasm_bindgen(js_name = mergeAll)]
    pub fn merge_all(tables: Vec<CountTable>) -> Result<Self, Thrown> {
        let tables = tables.iter().map(|table| &table.0);
        Ok(Self(tallyfold::CountTable::merge_all(tables)?))
    }

    /// What of a range is not covered.
    pub fn gaps(&self, range: &JsValue) -> Result<Array, Thrown> {
        let range = match range.is_undefined() || range.is_null() {
            true => None,
            false => Some(convert::range(&Fields::of("range", range)?)?),
        };
        Ok(convert::windows(&self.0.gaps(range)))
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

    /// The three counts, per row.
    #[wasm_bindgen(js_name = countColumns)]
    pub fn count_columns(&self) -> Array {
        convert::count_columns([self.0.success(), self.0.errors(), self.0.filtered()])
    }

    /// The three rates, per row.
    pub fn rates(&self) -> Array {
        convert::float_columns(self.0.rows().map(|row| convert::rates(row.counts())))
    }
}
