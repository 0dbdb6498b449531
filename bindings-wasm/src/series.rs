//! [`tallyfold::Series`].

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::{Returned, Thrown};
use crate::frame::frame;
use crate::plain::plain;

/// Counts by window and dimension values.
#[wasm_bindgen(js_name = CoreSeries)]
pub struct Series(pub(crate) tallyfold::Series);

frame!(Series, CoreSeries);

#[wasm_bindgen(js_class = CoreSeries)]
impl Series {
    /// The length of the windows, if they are steps.
    pub fn step(&self) -> Option<String> {
        self.0.step().map(|step| step.to_string())
    }

    /// The windows in chronological order.
    pub fn windows(&self) -> Returned {
        Ok(plain(self.0.windows()))
    }

    /// The series with rows of zeros for the groups that a window lacks.
    #[wasm_bindgen(js_name = fillZeros)]
    pub fn fill_zeros(&self) -> Result<Self, Thrown> {
        Ok(Self(self.0.fill_zeros()?))
    }

    /// The sum of all rows.
    pub fn totals(&self) -> Returned {
        Ok(plain(&self.0.totals()))
    }
}
