//! [`tallyfold::Aggregator`].

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{self, Fields};
use crate::error::Thrown;
use crate::table::CountTable;

/// Bytes of a response in, a table out.
#[wasm_bindgen(js_name = CoreAggregator)]
pub struct Aggregator(tallyfold::Aggregator);

#[wasm_bindgen(js_class = CoreAggregator)]
impl Aggregator {
    /// For a response that was asked for with these dimensions.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue) -> Result<Self, Thrown> {
        let options = Fields::of("options", options)?;
        let dimensions = options.required_texts("dimensions")?;
        let options = convert::aggregator_options(&options)?;
        Ok(Self(tallyfold::Aggregator::new(&dimensions, options)?))
    }

    /// The next bytes.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), Thrown> {
        Ok(self.0.push(chunk)?)
    }

    /// No more bytes.
    pub fn finish(&mut self) -> Result<CountTable, Thrown> {
        Ok(self.0.finish()?.into())
    }
}
