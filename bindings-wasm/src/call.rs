//! [`tallyfold::Call`].

use serde::Serialize;
use tallyfold::{Api, Output, Secret};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::required;
use crate::error::{Returned, Thrown};
use crate::host;
use crate::plain::plain;
use crate::staging::staged;
use crate::table::CountTable;

/// One call in progress.
#[wasm_bindgen(js_name = CoreCall)]
pub struct Call(pub(crate) tallyfold::Call);

/// [`tallyfold::Step`].
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Step {
    Send { request: Request },
    ProvideToken { api: Api },
    Blocked { epoch: u64 },
    Wait { ms: u32 },
    Done,
}

#[derive(Serialize)]
struct Request {
    method: String,
    url: String,
    /// Alternating names and values.
    headers: Vec<String>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    body: JsValue,
}

impl From<tallyfold::Step> for Step {
    fn from(step: tallyfold::Step) -> Self {
        match step {
            tallyfold::Step::Send(request) => Self::Send {
                request: Request {
                    method: request.method().to_owned(),
                    url: request.url().to_owned(),
                    headers: request
                        .headers()
                        .flat_map(|(name, value)| [name.to_owned(), value.to_owned()])
                        .collect(),
                    body: request.body().map(js_sys::Uint8Array::from).into(),
                },
            },
            tallyfold::Step::ProvideToken { api } => Self::ProvideToken { api },
            tallyfold::Step::Blocked { epoch } => Self::Blocked { epoch },
            tallyfold::Step::Wait { ms } => Self::Wait { ms },
            tallyfold::Step::Done => Self::Done,
        }
    }
}

#[wasm_bindgen(js_class = CoreCall)]
impl Call {
    /// What to do next.
    pub fn step(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(plain(&Step::from(self.0.step(host::now(now)?)?)))
    }

    /// How many milliseconds are left until its deadline; infinite if it has none.
    #[wasm_bindgen(js_name = timeLeft)]
    pub fn time_left(&mut self, now: &JsValue) -> Result<f64, Thrown> {
        let left = self.0.time_left(host::now(now)?);
        Ok(left.map_or(f64::INFINITY, |ms| ms as f64))
    }

    /// Takes the status and headers of a response. Returns whether to pass its body.
    pub fn head(&mut self, status: &JsValue, headers: &JsValue) -> Result<bool, Thrown> {
        let status = required::<u16>("status", status).ok();
        let status = status.filter(|status| (100..1000).contains(status));
        let want = "want a whole number from 100 to 999";
        let status = status.ok_or_else(|| Thrown::refused("status", want))?;
        let headers: Vec<String> = required("headers", headers)?;
        Ok(self.0.head(status, &host::headers(&headers))?)
    }

    /// Takes the next bytes of the body from the buffer of [`crate::staging`].
    pub fn chunk(&mut self, length: usize) -> Result<(), Thrown> {
        Ok(staged(length, |chunk| self.0.chunk(chunk))?)
    }

    /// Takes the end of the body.
    pub fn end(&mut self) -> Result<(), Thrown> {
        Ok(self.0.end()?)
    }

    /// Takes the failure of the exchange.
    pub fn failed(&mut self, failure: &JsValue, detail: &JsValue) -> Result<(), Thrown> {
        let detail: String = required("detail", detail)?;
        Ok(self.0.failed(required("failure", failure)?, &detail)?)
    }

    /// Takes a token of the host. Its lifetime is a text, which the core checks.
    pub fn token(&mut self, value: String, lifetime: Option<String>) -> Result<(), Thrown> {
        Ok(self.0.token(Secret::from(value), lifetime.as_deref())?)
    }

    /// Takes the failure of the host to get a token.
    #[wasm_bindgen(js_name = tokenFailed)]
    pub fn token_failed(&mut self) -> Result<(), Thrown> {
        Ok(self.0.token_failed()?)
    }

    /// A table, or the text of a JSON document.
    pub fn output(&mut self) -> Result<JsValue, Thrown> {
        Ok(match self.0.output()? {
            Output::Table(table) => CountTable(table).into(),
            // The document was checked to be JSON, so it is UTF-8.
            Output::Json(document) => {
                String::from_utf8(document.into_bytes()).unwrap_or_default().into()
            }
            Output::Token(token) => token.to_json().into(),
        })
    }

    /// The request that has ended since the last call of this method.
    pub fn attempt(&mut self) -> Returned {
        Ok(plain(&self.0.attempt()))
    }

    /// Makes the call fail early if the service is down, instead of after all retries.
    #[wasm_bindgen(js_name = failFast)]
    pub fn fail_fast(&mut self, since: u64) {
        self.0.fail_fast(since);
    }

    /// Gives up the token fetch that this call waits for.
    pub fn overtake(&mut self, epoch: u64) {
        self.0.overtake(epoch);
    }

    /// Ends the call early, so that another call can fetch the token that this call may be fetching.
    pub fn close(&mut self) {
        self.0.close();
    }
}
