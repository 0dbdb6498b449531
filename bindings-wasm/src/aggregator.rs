//! [`tallyfold::Aggregator`].

use tallyfold::AggregatorOptions;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Fields, options, required};
use crate::error::Thrown;
use crate::host::random_seed;
use crate::staging::staged;
use crate::table::CountTable;

/// [`tallyfold::AggregatorPlan`], so that options cross once.
#[wasm_bindgen(js_name = CoreAggregatorPlan)]
pub struct AggregatorPlan(tallyfold::AggregatorPlan);

#[wasm_bindgen(js_class = CoreAggregatorPlan)]
impl AggregatorPlan {
    /// For responses that are requested with these dimensions.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<Self, Thrown> {
        let dimensions = Fields::of("options", given)?.get("dimensions")?;
        let dimensions: Vec<String> = required("dimensions", &dimensions)?;
        let options: AggregatorOptions = options("options", given, &["dimensions"])?;
        Ok(Self(tallyfold::AggregatorPlan::new(&dimensions, options)?))
    }

    /// For one response.
    pub fn aggregator(&self) -> Aggregator {
        Aggregator(self.0.aggregator(random_seed()))
    }
}

/// Bytes of a response in, a table out.
#[wasm_bindgen(js_name = CoreAggregator)]
pub struct Aggregator(tallyfold::Aggregator);

#[wasm_bindgen(js_class = CoreAggregator)]
impl Aggregator {
    /// The next bytes, as staged; whether they are good. An error costs more to return than a flag.
    pub fn push(&mut self, length: usize) -> bool {
        staged(length, |chunk| self.0.push(chunk)).is_ok()
    }

    /// No more bytes. Nothing where there is an error.
    pub fn finish(&mut self) -> Option<CountTable> {
        self.0.finish().ok().map(CountTable)
    }

    /// Throws the error that the last call met, which the core repeats.
    pub fn fail(&mut self) -> Result<(), Thrown> {
        self.0.push(&[])?;
        Ok(())
    }
}
