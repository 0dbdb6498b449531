//! [`tallyfold::Follow`].

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::Call;
use crate::convert;
use crate::error::Thrown;

/// Windows as they close, and their corrections.
#[wasm_bindgen(js_name = CoreFollow)]
pub struct Follow(tallyfold::Follow);

impl From<tallyfold::Follow> for Follow {
    fn from(follow: tallyfold::Follow) -> Self {
        Self(follow)
    }
}

#[wasm_bindgen(js_class = CoreFollow)]
impl Follow {
    /// What to do next.
    pub fn next(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(convert::follow_step(self.0.next(convert::now(now)?)))
    }

    /// Takes what a call that has ended gave: a revision, if it had ended.
    pub fn settle(
        &mut self,
        task: &JsValue,
        call: &mut Call,
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let (task, now) = (convert::task(task)?, convert::now(now)?);
        let revision = self.0.settle(task, &mut call.0, now)?;
        Ok(revision.map_or(JsValue::UNDEFINED, convert::revision))
    }

    /// The windows that are not settled.
    pub fn provisional(&self) -> JsValue {
        convert::windows(&self.0.provisional()).into()
    }
}
