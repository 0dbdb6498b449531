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

/// A push under way.
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
    /// Of an export, with the facade's options; `others` are the names of options that the facade reads. `in_doubt` is for
    /// the export of an outbox.
    #[wasm_bindgen(constructor)]
    pub fn new(
        export: &Export,
        given: &JsValue,
        others: Vec<String>,
        finished: &JsValue,
        in_doubt: &JsValue,
    ) -> Result<Self> {
        let others: Vec<String> = others
            .into_iter()
            .chain(names_of::<ExportOptions>())
            .collect();
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

    /// A response began. Gives whether its body is wanted.
    pub fn head(&mut self, status: u16, headers: Vec<String>) -> Result<bool> {
        Ok(self.0.head(status, &host::headers(&headers))?)
    }

    /// Some of its body came.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        Ok(self.0.chunk(chunk)?)
    }

    /// Its body is complete.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.0.end()?)
    }

    /// The datagram was sent.
    pub fn sent(&mut self) -> Result<()> {
        Ok(self.0.sent()?)
    }

    /// The exchange broke.
    pub fn failed(&mut self, failure: &JsValue, detail: &str) -> Result<()> {
        Ok(self.0.failed(required("failure", failure)?, detail)?)
    }

    /// What became of it so far.
    pub fn report(&self) -> Returned {
        Ok(plain(self.0.report()))
    }
}
