//! [`tallyfold_export::Ledger`].

use tallyfold_export::{Addition, Format, Labels};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::optional;
use crate::error::Result;
use crate::export::{Export, read};
use crate::plain::plain;
use crate::rows::Rows;

/// Running totals of settled windows.
#[wasm_bindgen(js_name = CoreLedger)]
pub struct Ledger(tallyfold_export::Ledger);

#[wasm_bindgen(js_class = CoreLedger)]
impl Ledger {
    /// Reads a ledger from a document. Without one, the ledger is empty and begins now.
    #[wasm_bindgen(constructor)]
    pub fn new(saved: &JsValue, unix_ms: f64) -> Result<Self> {
        let saved: Option<String> = optional("saved", saved)?;
        if let Some(saved) = saved {
            return Ok(Self(tallyfold_export::Ledger::from_json(saved.as_bytes())?));
        }
        Self(tallyfold_export::Ledger::default()).stamped(unix_ms)
    }

    /// The ledger with a new time: the time of the host's clock, or of the service's clock if the host's clock is ahead. It is
    /// always later than the previous time.
    pub fn stamped(&self, unix_ms: f64) -> Result<Self> {
        let mut ledger = self.0.clone();
        ledger.stamp_at(unix_ms as i64)?;
        Ok(Self(ledger))
    }

    /// An export of the totals. The arguments are the last three of [`Export::new`].
    pub fn totals(&self, given: &JsValue, others: Vec<String>, unix_ms: f64) -> Result<Export> {
        Export::made(self.0.totals()?, &read(given, &others, unix_ms)?)
    }

    /// The ledger after a revision: with the rows of its table, if they are settled, and the state of its follow.
    pub fn added(
        &self,
        rows: Rows,
        settled: bool,
        state: String,
        allow_gap: bool,
        clock_ahead_ms: f64,
        unix_ms: f64,
    ) -> Result<Self> {
        let addition =
            Addition { settled, state, allow_gap, clock_ahead_ms: clock_ahead_ms as u64 };
        let mut added = self.0.clone();
        added.add_at(&rows.windowed()?, addition, unix_ms as i64)?;
        Ok(Self(added))
    }

    /// The document to store.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// A message about a total above 2^53, if there is one.
    pub fn inexact(&self) -> Option<String> {
        self.0.note().map(|note| note.message())
    }

    /// The state of the follow.
    pub fn state(&self) -> Option<String> {
        self.0.state().map(str::to_owned)
    }

    /// The end of the newest window that was added.
    #[wasm_bindgen(js_name = settledUntil)]
    pub fn settled_until(&self) -> Option<String> {
        self.0.settled_until().map(|end| end.to_string())
    }

    /// The totals as counters.
    pub fn counters(&self, labels: &JsValue, name: &JsValue) -> Result<JsValue> {
        let (labels, name) = names(labels, name)?;
        Ok(plain(&self.0.counters(&labels, name.as_deref())?))
    }

    /// The totals as text for a scrape.
    pub fn openmetrics(&self, labels: &JsValue, name: &JsValue) -> Result<String> {
        let (labels, name) = names(labels, name)?;
        Ok(self.0.openmetrics(&labels, name.as_deref())?)
    }

    /// The media type, for `Content-Type`.
    #[wasm_bindgen(js_name = mediaType)]
    pub fn media_type() -> String {
        Format::OpenMetrics.media_type().to_owned()
    }
}

fn names(labels: &JsValue, name: &JsValue) -> Result<(Labels, Option<String>)> {
    let labels: Option<Labels> = optional("labels", labels)?;
    Ok((labels.unwrap_or_default(), optional("name", name)?))
}
