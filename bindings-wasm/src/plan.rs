//! [`tallyfold::Plan`].

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{self, Fields};
use crate::error::Thrown;

/// A range cut into windows.
#[wasm_bindgen(js_name = CorePlan)]
pub struct Plan(tallyfold::Plan);

#[wasm_bindgen(js_class = CorePlan)]
impl Plan {
    /// Of a range and a step.
    #[wasm_bindgen(constructor)]
    pub fn new(range: &JsValue) -> Result<Self, Thrown> {
        let fields = Fields::of("plan", range)?;
        let step = convert::step_field(&fields, "window")?;
        let step = step.ok_or_else(|| Thrown::missing("window"))?;
        Ok(Self(tallyfold::Plan::new(convert::range(&fields)?, step)))
    }

    /// How many windows: below 2^53, as there are 2^39 seconds in all years.
    pub fn length(&self) -> f64 {
        self.0.len() as f64
    }

    /// The window at a position.
    pub fn at(&self, index: f64) -> JsValue {
        let window = self.0.window(index as u64);
        window.map_or(JsValue::UNDEFINED, convert::window)
    }

    /// One of several disjoint parts.
    pub fn part(&self, part: &JsValue) -> Result<Self, Thrown> {
        let (index, of) = convert::part(part)?;
        Ok(Self(self.0.part(index, of)?))
    }
}
