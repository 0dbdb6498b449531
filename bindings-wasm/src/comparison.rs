//! [`tallyfold::Comparison`].

use js_sys::{Array, BigUint64Array};
use tallyfold::{ComparisonRow, CountColumns};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;
use crate::error::Thrown;

/// Two tables, group by group.
#[wasm_bindgen(js_name = CoreComparison)]
pub struct Comparison(tallyfold::Comparison);

impl From<tallyfold::Comparison> for Comparison {
    fn from(comparison: tallyfold::Comparison) -> Self {
        Self(comparison)
    }
}

#[wasm_bindgen(js_class = CoreComparison)]
impl Comparison {
    /// Names of the dimensions.
    pub fn dimensions(&self) -> Array {
        convert::names(self.0.dimensions())
    }

    /// Name of the metric, if known.
    pub fn metric(&self) -> Option<String> {
        convert::metric(self.0.metric())
    }

    /// Windows before, joined where they meet.
    #[wasm_bindgen(js_name = beforeCoverage)]
    pub fn before_coverage(&self) -> Array {
        convert::windows(self.0.before_coverage())
    }

    /// Windows after, joined where they meet.
    #[wasm_bindgen(js_name = afterCoverage)]
    pub fn after_coverage(&self) -> Array {
        convert::windows(self.0.after_coverage())
    }

    /// Totals before.
    #[wasm_bindgen(js_name = beforeTotals)]
    pub fn before_totals(&self) -> BigUint64Array {
        convert::counts(self.0.before_totals())
    }

    /// Totals after.
    #[wasm_bindgen(js_name = afterTotals)]
    pub fn after_totals(&self) -> BigUint64Array {
        convert::counts(self.0.after_totals())
    }

    /// Totals after minus totals before.
    #[wasm_bindgen(js_name = totalDelta)]
    pub fn total_delta(&self) -> JsValue {
        convert::deltas(self.0.total_delta())
    }

    /// Number of rows.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// The rows with the largest changes, each as its values, presence, counts and shares.
    pub fn top(&self, n: &JsValue, by: &JsValue) -> Result<Array, Thrown> {
        let positions = self
            .0
            .top(convert::size("n", n)?, &convert::string("by", by)?)?;
        let rows = positions.into_iter().filter_map(|at| self.0.row(at));
        Ok(convert::array(rows.map(cells)))
    }

    /// Per dimension, its distinct values and, per row, which one it is.
    #[wasm_bindgen(js_name = dimensionColumns)]
    pub fn dimension_columns(&self) -> Array {
        convert::array(self.0.columns().map(convert::dimension_column))
    }

    /// What presences there are and, per row, which one it is.
    pub fn presences(&self) -> JsValue {
        convert::presences(self.0.presences())
    }

    /// The three counts before, per row.
    pub fn before(&self) -> Array {
        columns(self.0.before_columns())
    }

    /// The three counts after, per row.
    pub fn after(&self) -> Array {
        columns(self.0.after_columns())
    }

    /// The three shares, per row.
    pub fn shares(&self) -> Array {
        convert::float_columns(self.0.rows().map(convert::shares))
    }

    /// As JSON text.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }
}

fn columns(side: &CountColumns) -> Array {
    convert::count_columns([side.success(), side.errors(), side.filtered()])
}

fn cells(row: ComparisonRow<'_>) -> JsValue {
    // Counts of a group that is not there are 0, as in the columns.
    let [before, after] = [row.before(), row.after()].map(Option::unwrap_or_default);
    let cells = convert::cells(row.values(), &[before, after]);
    cells.push(&row.presence().as_str().into());
    for share in convert::shares(row) {
        cells.push(&share.into());
    }
    cells.into()
}
