//! [`tallyfold::Series`].

use js_sys::{Array, BigUint64Array, Uint32Array};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert;

/// Counts by window and dimension values.
#[wasm_bindgen(js_name = CoreSeries)]
pub struct Series(tallyfold::Series);

impl From<tallyfold::Series> for Series {
    fn from(series: tallyfold::Series) -> Self {
        Self(series)
    }
}

#[wasm_bindgen(js_class = CoreSeries)]
impl Series {
    /// Names of the dimensions.
    pub fn dimensions(&self) -> Array {
        convert::names(self.0.dimensions())
    }

    /// Name of the metric, if known.
    pub fn metric(&self) -> Option<String> {
        convert::metric(self.0.metric())
    }

    /// Length of the windows, if they are steps.
    pub fn step(&self) -> Option<String> {
        self.0.step().map(|step| step.to_string())
    }

    /// Windows in order.
    pub fn windows(&self) -> Array {
        convert::series_windows(self.0.windows())
    }

    /// Sum over all rows.
    pub fn totals(&self) -> BigUint64Array {
        convert::counts(self.0.totals())
    }

    /// Number of rows.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Per row, the position of its window.
    #[wasm_bindgen(js_name = windowIds)]
    pub fn window_ids(&self) -> Uint32Array {
        Uint32Array::from(self.0.window_ids())
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

    /// As JSON text.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }
}
