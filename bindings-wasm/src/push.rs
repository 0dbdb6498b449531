//! [`tallyfold_export::Push`].

use tallyfold_export::{ExportOptions, PushOptions};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{names_of, optional, options, required};
use crate::error::{Result, Returned};
use crate::export::Export;
use crate::host;
use crate::plain::plain;
use crate::sending::Step;

/// A push in progress.
#[wasm_bindgen(js_name = CorePush)]
pub struct Push(tallyfold_export::Push);

/// The names of the options that a push has in addition to an export's.
#[wasm_bindgen(js_name = pushOptionNames)]
#[must_use]
pub fn push_option_names() -> Vec<String> {
    names_of::<PushOptions>().collect()
}

#[wasm_bindgen(js_class = CorePush)]
impl Push {
    /// Begins to push an export, with the facade's options. `others` are the names of options that the facade reads. `in_doubt`
    /// is set only for the export of an outbox.
    #[wasm_bindgen(constructor)]
    pub fn new(
        export: &Export,
        given: &JsValue,
        others: Vec<String>,
        finished: &JsValue,
        in_doubt: &JsValue,
    ) -> Result<Self> {
        let others: Vec<String> = others.into_iter().chain(names_of::<ExportOptions>()).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let mut options: PushOptions = options("options", given, &others)?;
        options.finished = required("finished", finished)?;
        options.in_doubt = optional("inDoubt", in_doubt)?;
        options.seed = host::random_seed();
        let export = export.export.clone();
        Ok(Self(tallyfold_export::Push::new(export, &options)?))
    }

    /// What to do next.
    pub fn step(&mut self, now: &JsValue) -> Result<JsValue> {
        Ok(plain(&Step::from(self.0.step(host::now(now)?)?)))
    }

    /// Takes the status and headers of a response. Returns whether to pass its body.
    pub fn head(&mut self, status: u16, headers: Vec<String>) -> Result<bool> {
        Ok(self.0.head(status, &host::headers(&headers))?)
    }

    /// Takes the next bytes of the body. Returns whether to pass more of it.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        Ok(self.0.chunk(chunk)?)
    }

    /// Takes the end of the body.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.0.end()?)
    }

    /// The datagram was sent.
    pub fn sent(&mut self) -> Result<()> {
        Ok(self.0.sent()?)
    }

    /// Takes the failure of the exchange.
    pub fn failed(&mut self, failure: &JsValue, detail: &str) -> Result<()> {
        Ok(self.0.failed(required("failure", failure)?, detail)?)
    }

    /// The report so far.
    pub fn report(&self) -> Returned {
        Ok(plain(self.0.report()))
    }
}
