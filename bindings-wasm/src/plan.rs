//! [`tallyfold::Plan`].

use tallyfold::{PartOptions, PlanOptions};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::options;
use crate::error::{Returned, Thrown};
use crate::plain::plain;

/// A range cut into windows.
#[wasm_bindgen(js_name = CorePlan)]
pub struct Plan(tallyfold::Plan);

#[wasm_bindgen(js_class = CorePlan)]
impl Plan {
    /// Of a range and a step.
    #[wasm_bindgen(constructor)]
    pub fn new(plan: &JsValue) -> Result<Self, Thrown> {
        let options: PlanOptions = options("plan", plan, &[])?;
        Ok(Self(tallyfold::Plan::of(&options)?))
    }

    /// How many windows: below 2^53, as there are 2^39 seconds in all years.
    pub fn length(&self) -> f64 {
        self.0.len() as f64
    }

    /// The window at a position.
    pub fn at(&self, index: f64) -> Returned {
        Ok(plain(&self.0.window(index as u64)))
    }

    /// One of several disjoint parts.
    pub fn part(&self, part: &JsValue) -> Result<Self, Thrown> {
        let PartOptions { index, of, .. } = options("part", part, &[])?;
        Ok(Self(self.0.part(index, of)?))
    }
}
