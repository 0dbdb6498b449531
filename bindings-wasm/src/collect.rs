//! [`tallyfold::Collect`] and [`tallyfold::Probe`], which workers drive alike.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::Call;
use crate::convert;
use crate::error::Thrown;

/// A long range, window by window.
#[wasm_bindgen(js_name = CoreCollect)]
pub struct Collect(tallyfold::Collect);

impl From<tallyfold::Collect> for Collect {
    fn from(collect: tallyfold::Collect) -> Self {
        Self(collect)
    }
}

#[wasm_bindgen(js_class = CoreCollect)]
impl Collect {
    /// What to do next.
    pub fn next(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(convert::collect_step(self.0.next(convert::now(now)?)))
    }

    /// Takes what a call that has ended gave.
    pub fn settle(
        &mut self,
        task: &JsValue,
        call: &mut Call,
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let (task, now) = (convert::task(task)?, convert::now(now)?);
        Ok(convert::settled(self.0.settle(task, &mut call.0, now)?))
    }

    /// How far it is, in windows.
    pub fn progress(&self) -> JsValue {
        convert::progress(self.0.progress())
    }

    /// The windows that were read so early that their counts may still change.
    pub fn provisional(&self) -> JsValue {
        convert::windows(&self.0.provisional()).into()
    }

    /// The table, or the error with all that there is.
    pub fn finish(&self) -> JsValue {
        convert::ended(self.0.finish())
    }

    /// The next segment to store, as its name and its text.
    pub fn unsaved(&mut self) -> Option<Vec<String>> {
        let segment = self.0.unsaved()?;
        Some(vec![segment.name, segment.json])
    }

    /// Takes up a stored segment.
    pub fn load(&mut self, name: &JsValue, json: &[u8]) -> Result<(), Thrown> {
        Ok(self.0.load(&convert::string("name", name)?, json)?)
    }
}

/// The name of the segment of that number.
#[wasm_bindgen(js_name = segmentName)]
#[must_use]
pub fn segment_name(number: f64) -> String {
    tallyfold::segment_name(number as u64)
}

/// Whether counts of adjacent windows add up.
#[wasm_bindgen(js_name = CoreProbe)]
pub struct Probe(tallyfold::Probe);

impl From<tallyfold::Probe> for Probe {
    fn from(probe: tallyfold::Probe) -> Self {
        Self(probe)
    }
}

#[wasm_bindgen(js_class = CoreProbe)]
impl Probe {
    /// What to do next.
    pub fn step(&mut self) -> JsValue {
        convert::collect_step(self.0.step())
    }

    /// Takes what a call that has ended gave.
    pub fn settle(&mut self, task: &JsValue, call: &mut Call) -> Result<(), Thrown> {
        Ok(self.0.settle(convert::task(task)?, &mut call.0)?)
    }

    /// What was found.
    pub fn finish(&self) -> Result<JsValue, Thrown> {
        Ok(convert::additivity(self.0.finish()?))
    }
}
