//! [`tallyfold::Sandbox`].

use tallyfold::SandboxOptions;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{self, Fields};
use crate::error::Thrown;

/// The service's side of both APIs.
#[wasm_bindgen(js_name = CoreSandbox)]
pub struct Sandbox {
    core: tallyfold::Sandbox,
    options: SandboxOptions,
}

#[wasm_bindgen(js_class = CoreSandbox)]
impl Sandbox {
    /// With the facade's options.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue) -> Result<Self, Thrown> {
        let options = convert::sandbox_options(options)?;
        Ok(Self {
            core: tallyfold::Sandbox::new(options.clone())?,
            options,
        })
    }

    /// What a client needs to be let in.
    pub fn credentials(&self) -> JsValue {
        convert::credentials(&self.options)
    }

    /// Stores events.
    pub fn record(&mut self, event: &JsValue) -> Result<(), Thrown> {
        let event = Fields::of("event", event)?;
        Ok(self.core.record(
            &event.required_instant("timestamp")?,
            &event.required_text("outcome")?,
            &event.required_text("eventName")?,
            &event.required_text("writeKey")?,
            &event.required_text("integration")?,
            &event.text("reason")?.unwrap_or_default(),
            event.integer("count")?.unwrap_or(1),
        )?)
    }

    /// Answers a request.
    pub fn handle(
        &mut self,
        request: &JsValue,
        body: &[u8],
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let request = Fields::of("request", request)?;
        let (method, target) = (
            request.required_text("method")?,
            request.required_text("target")?,
        );
        let headers = request.texts("headers")?.unwrap_or_default();
        let headers = convert::headers(&headers);
        let now = convert::now(now)?;
        Ok(convert::response(
            &self.core.handle(&method, &target, &headers, body, now),
        ))
    }

    /// Makes something go wrong, said in JSON.
    pub fn inject(&mut self, fault: &JsValue) -> Result<(), Thrown> {
        Ok(self.core.inject_json(&convert::string("fault", fault)?)?)
    }

    /// Makes all tokens invalid.
    #[wasm_bindgen(js_name = revokeTokens)]
    pub fn revoke_tokens(&mut self) {
        self.core.revoke_tokens();
    }

    /// Requests so far, by endpoint.
    pub fn stats(&self) -> JsValue {
        convert::stats(self.core.stats())
    }
}
