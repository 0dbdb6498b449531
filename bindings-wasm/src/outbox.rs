//! [`tallyfold_export::Outbox`].

use tallyfold_export::Source;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{optional, required};
use crate::error::Result;
use crate::export::{Export, read};
use crate::rows::Rows;

/// An immutable outbox: each action returns a new one.
#[wasm_bindgen(js_name = CoreOutbox)]
pub struct Outbox(tallyfold_export::Outbox);

#[wasm_bindgen(js_class = CoreOutbox)]
impl Outbox {
    /// Reads an outbox from a document. Without one, the outbox is empty.
    #[wasm_bindgen(constructor)]
    pub fn new(saved: &JsValue) -> Result<Self> {
        let saved: Option<String> = optional("saved", saved)?;
        let outbox = saved.map(|saved| tallyfold_export::Outbox::from_json(saved.as_bytes()));
        Ok(Self(outbox.transpose()?.unwrap_or_default()))
    }

    /// The outbox with a revision to send, and the state of its follow after it.
    pub fn put(
        &self,
        changes: Rows,
        revision: Option<u32>,
        state: String,
        format: &JsValue,
    ) -> Result<Self> {
        let mut outbox = self.0.clone();
        let source = Source::of_rows(changes.windowed()?, revision);
        outbox.put_source(&source, state, required("format", format)?)?;
        Ok(Self(outbox))
    }

    /// An export of the pending revision; `None` if no revision is pending. The arguments are the last three of
    /// [`Export::new`].
    pub fn pending(
        &self,
        given: &JsValue,
        others: Vec<String>,
        unix_ms: f64,
    ) -> Result<Option<Export>> {
        let options = read(given, &others, unix_ms)?;
        let pending = self.0.pending(options.format)?;
        let made = |(source, _)| Export::made(source, &options);
        pending.map(made).transpose()
    }

    /// How many samples of the pending revision are finished; `None` if no revision is pending.
    pub fn finished(&self, format: &JsValue) -> Result<Option<u64>> {
        Ok(self.0.finished(required("format", format)?)?)
    }

    /// How many samples were being sent when a push ended early, and were in no report yet.
    #[wasm_bindgen(js_name = inDoubt)]
    pub fn in_doubt(&self) -> u64 {
        self.0.in_doubt()
    }

    /// The outbox with this number of finished samples, and this number of samples in doubt.
    pub fn finish(&self, samples: u64, in_doubt: u64) -> Self {
        let mut outbox = self.0.clone();
        outbox.finish(samples, in_doubt);
        Self(outbox)
    }

    /// The outbox after a report has shown this number of samples in doubt.
    pub fn acknowledge(&self, samples: u64) -> Self {
        let mut outbox = self.0.clone();
        outbox.acknowledge(samples);
        Self(outbox)
    }

    /// The outbox without a pending revision.
    pub fn clear(&self) -> Self {
        let mut outbox = self.0.clone();
        outbox.clear();
        Self(outbox)
    }

    /// The state of the follow.
    pub fn state(&self) -> Option<String> {
        self.0.state().map(str::to_owned)
    }

    /// The document to store.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }
}
