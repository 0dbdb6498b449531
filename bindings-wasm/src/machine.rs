//! [`tallyfold::Machine`].

use tallyfold::{MachineOptions, Patience};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::options;
use crate::call::Call;
use crate::error::Thrown;
use crate::host::random_seed;
use crate::ranges::{Collect, Follow, Probe};
use crate::table::CountTable;

/// The caller's side of both APIs.
#[wasm_bindgen(js_name = CoreMachine)]
pub struct Machine(tallyfold::Machine);

/// Names that the facade handles by itself.
fn names(others: &[String]) -> Vec<&str> {
    others.iter().map(String::as_str).collect()
}

#[wasm_bindgen(js_class = CoreMachine)]
impl Machine {
    /// With the facade's options.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<Self, Thrown> {
        let options = MachineOptions {
            hash_seed: random_seed(),
            jitter_seed: random_seed(),
            ..options("options", given, &[])?
        };
        Ok(Self(tallyfold::Machine::new(options)?))
    }

    /// How many milliseconds an exchange may take; infinite if there is no end.
    #[wasm_bindgen(js_name = timeoutMs)]
    pub fn timeout_ms(&self) -> f64 {
        match self.0.timeout() {
            Patience::Milliseconds(ms) => ms as f64,
            Patience::Endless => f64::INFINITY,
        }
    }

    /// Service reference 4.4.
    #[wasm_bindgen(js_name = eventDelivery)]
    pub fn event_delivery(&self, query: &JsValue, others: Vec<String>) -> Result<Call, Thrown> {
        let options = options("query", query, &names(&others))?;
        Ok(Call(self.0.event_delivery(&options)?))
    }

    /// Service reference 4.5.
    #[wasm_bindgen(js_name = eventIngestion)]
    pub fn event_ingestion(&self, query: &JsValue, others: Vec<String>) -> Result<Call, Thrown> {
        let options = options("query", query, &names(&others))?;
        Ok(Call(self.0.event_ingestion(&options)?))
    }

    /// Service reference 4.2.
    #[wasm_bindgen(js_name = auditLogs)]
    pub fn audit_logs(&self, query: &JsValue, others: Vec<String>) -> Result<Call, Thrown> {
        let options = options("query", query, &names(&others))?;
        Ok(Call(self.0.audit_logs(&options)?))
    }

    /// A long range, of which a table may hold some already.
    pub fn collect(
        &self,
        query: &JsValue,
        have: Option<CountTable>,
        others: Vec<String>,
    ) -> Result<Collect, Thrown> {
        let options = tallyfold::CollectOptions {
            have: have.map(|table| table.0),
            ..options("query", query, &names(&others))?
        };
        Ok(Collect(self.0.collect(options)?))
    }

    /// Windows as they close.
    pub fn follow(&self, query: &JsValue, others: Vec<String>) -> Result<Follow, Thrown> {
        let options = options("query", query, &names(&others))?;
        Ok(Follow(self.0.follow(&options)?))
    }

    /// Whether the windows between three instants add up.
    #[wasm_bindgen(js_name = probeAdditivity)]
    pub fn probe_additivity(&self, query: &JsValue, others: Vec<String>) -> Result<Probe, Thrown> {
        let options = options("query", query, &names(&others))?;
        Ok(Probe(self.0.probe_additivity(&options)?))
    }

    /// Grows with every change of a token.
    #[wasm_bindgen(js_name = tokenEpoch)]
    pub fn token_epoch(&self) -> u64 {
        self.0.token_epoch()
    }
}
