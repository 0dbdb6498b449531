//! [`tallyfold::Comparison`].

use tallyfold::{Deltas, Frame};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::{Returned, Thrown};
use crate::frame::frame;
use crate::plain::plain;

/// Two tables, group by group.
#[wasm_bindgen(js_name = CoreComparison)]
pub struct Comparison(pub(crate) tallyfold::Comparison);

frame!(Comparison, CoreComparison);

#[wasm_bindgen(js_class = CoreComparison)]
impl Comparison {
    /// The windows before. Adjacent windows are joined.
    #[wasm_bindgen(js_name = beforeCoverage)]
    pub fn before_coverage(&self) -> Returned {
        Ok(plain(self.0.before_coverage()))
    }

    /// The windows after. Adjacent windows are joined.
    #[wasm_bindgen(js_name = afterCoverage)]
    pub fn after_coverage(&self) -> Returned {
        Ok(plain(self.0.after_coverage()))
    }

    /// The totals before.
    #[wasm_bindgen(js_name = beforeTotals)]
    pub fn before_totals(&self) -> Returned {
        Ok(plain(&self.0.before_totals()))
    }

    /// The totals after.
    #[wasm_bindgen(js_name = afterTotals)]
    pub fn after_totals(&self) -> Returned {
        Ok(plain(&self.0.after_totals()))
    }

    /// The totals after minus the totals before.
    #[wasm_bindgen(js_name = totalDelta)]
    pub fn total_delta(&self) -> Returned {
        Ok(plain(&self.0.total_delta()))
    }

    /// How the counts of the given rows changed; by default, of all rows.
    pub fn deltas(&self, rows: Option<Vec<u32>>) -> Returned {
        let rows = rows.unwrap_or_else(|| (0..self.0.len() as u32).collect());
        let deltas = rows.into_iter().filter_map(|row| self.0.delta(row as usize));
        Ok(plain(&deltas.collect::<Vec<Deltas>>()))
    }
}
