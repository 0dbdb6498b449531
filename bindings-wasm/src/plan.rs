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
    /// Makes a plan from a range and a step.
    #[wasm_bindgen(constructor)]
    pub fn new(plan: &JsValue) -> Result<Self, Thrown> {
        let options: PlanOptions = options("plan", plan, &[])?;
        Ok(Self(tallyfold::Plan::of(&options)?))
    }

    /// The number of windows. It is below 2^53, because all years together have fewer than 2^39 seconds.
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
