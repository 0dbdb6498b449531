//! [`tallyfold_sandbox::Sandbox`].

use serde::Serialize;
use tallyfold_sandbox::{FaultOptions, SandboxOptions, SandboxResponse};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::options;
use crate::error::{Returned, Thrown};
use crate::host;
use crate::plain::plain;

/// A simulated service with both APIs.
#[wasm_bindgen(js_name = CoreSandbox)]
pub struct Sandbox {
    core: tallyfold_sandbox::Sandbox,
    options: SandboxOptions,
}

/// The credentials that a client needs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Credentials<'a> {
    client_id: &'a str,
    client_secret: &'a str,
    control_audience: &'a str,
    orchestration_audience: &'a str,
}

tallyfold::options! {
    /// A request as a server receives it.
    struct RequestOptions {
        /// The method.
        method: String,
        /// Path and query.
        target: String,
        /// Alternating names and values.
        headers: Vec<String> = Vec::new(),
    }
}

/// [`SandboxResponse`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    status: u16,
    headers: &'a [(String, String)],
    #[serde(with = "serde_wasm_bindgen::preserve")]
    body: JsValue,
    delay_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_at: Option<u32>,
}

impl<'a> From<&'a SandboxResponse> for Response<'a> {
    fn from(response: &'a SandboxResponse) -> Self {
        Self {
            status: response.status,
            headers: &response.headers,
            body: js_sys::Uint8Array::from(response.body.as_slice()).into(),
            delay_ms: response.delay_ms,
            cut_at: response.cut_at,
        }
    }
}

#[wasm_bindgen(js_class = CoreSandbox)]
impl Sandbox {
    /// Makes a sandbox with the facade's options.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<Self, Thrown> {
        let options: SandboxOptions = options("options", given, &["now"])?;
        Ok(Self { core: tallyfold_sandbox::Sandbox::new(options.clone())?, options })
    }

    /// The credentials that a client needs.
    pub fn credentials(&self) -> Returned {
        Ok(plain(&Credentials {
            client_id: &self.options.client_id,
            client_secret: self.options.client_secret.expose(),
            control_audience: &self.options.control_audience,
            orchestration_audience: &self.options.orchestration_audience,
        }))
    }

    /// Stores events.
    pub fn record(&mut self, event: &JsValue) -> Result<(), Thrown> {
        Ok(self.core.record(&options("event", event, &[])?)?)
    }

    /// Answers a request.
    pub fn handle(
        &mut self,
        request: &JsValue,
        body: &[u8],
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let request: RequestOptions = options("request", request, &[])?;
        let headers = host::headers(&request.headers);
        let (method, target, now) = (&request.method, &request.target, host::now(now)?);
        let response = self.core.handle(method, target, &headers, body, now);
        Ok(plain(&Response::from(&response)))
    }

    /// Adds a fault.
    pub fn inject(&mut self, fault: &JsValue) -> Result<(), Thrown> {
        let fault: FaultOptions = options("fault", fault, &[])?;
        Ok(self.core.inject(fault.fault()?)?)
    }

    /// Makes all tokens invalid.
    #[wasm_bindgen(js_name = revokeTokens)]
    pub fn revoke_tokens(&mut self) {
        self.core.revoke_tokens();
    }

    /// The number of requests so far, by endpoint.
    pub fn stats(&self) -> Returned {
        Ok(plain(&self.core.stats()))
    }
}
