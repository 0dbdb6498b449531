//! [`tallyfold::Aggregator`].

use tallyfold::AggregatorOptions;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Fields, options, required};
use crate::error::Thrown;
use crate::host::random_seed;
use crate::staging::staged;
use crate::table::CountTable;

/// [`tallyfold::AggregatorPlan`], so that options are read only once.
#[wasm_bindgen(js_name = CoreAggregatorPlan)]
pub struct AggregatorPlan(tallyfold::AggregatorPlan);

#[wasm_bindgen(js_class = CoreAggregatorPlan)]
impl AggregatorPlan {
    /// Makes a plan for responses with the dimensions in the options.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<Self, Thrown> {
        let dimensions = Fields::of("options", given)?.get("dimensions")?;
        let dimensions: Vec<String> = required("dimensions", &dimensions)?;
        let options: AggregatorOptions = options("options", given, &["dimensions"])?;
        Ok(Self(tallyfold::AggregatorPlan::new(&dimensions, options)?))
    }

    /// Makes an aggregator for one response.
    pub fn aggregator(&self) -> Aggregator {
        Aggregator(self.0.aggregator(random_seed()))
    }
}

/// Makes a table from the bytes of a response.
#[wasm_bindgen(js_name = CoreAggregator)]
pub struct Aggregator(tallyfold::Aggregator);

#[wasm_bindgen(js_class = CoreAggregator)]
impl Aggregator {
    /// Takes the next bytes from the buffer of [`crate::staging`], and returns whether they are valid. Returning an error takes
    /// longer than returning a flag.
    pub fn push(&mut self, length: usize) -> bool {
        staged(length, |chunk| self.0.push(chunk)).is_ok()
    }

    /// Ends the body. Returns `None` if there is an error.
    pub fn finish(&mut self) -> Option<CountTable> {
        self.0.finish().ok().map(CountTable)
    }

    /// Throws the error of the last call. The core returns the same error again.
    pub fn fail(&mut self) -> Result<(), Thrown> {
        self.0.push(&[])?;
        Ok(())
    }
}
