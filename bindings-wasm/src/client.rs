//! [`tallyfold::Client`] and [`tallyfold::Call`].

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::collect::{Collect, Probe};
use crate::convert::{self, Fields};
use crate::error::Thrown;
use crate::follow::Follow;
use crate::staging::staged;
use crate::table::CountTable;

/// The caller's side of both APIs.
#[wasm_bindgen(js_name = CoreClient)]
pub struct Client(tallyfold::Client);

#[wasm_bindgen(js_class = CoreClient)]
impl Client {
    /// With the facade's options.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue) -> Result<Self, Thrown> {
        Ok(Self(tallyfold::Client::new(convert::client_options(
            options,
        )?)?))
    }

    /// Service reference 4.4.
    #[wasm_bindgen(js_name = eventDelivery)]
    pub fn event_delivery(&self, query: &JsValue) -> Result<Call, Thrown> {
        let (start, end, dimensions, group_by) = convert::metrics_query(query)?;
        Ok(Call(self.0.event_delivery(
            &start,
            &end,
            &dimensions,
            group_by.as_deref(),
        )?))
    }

    /// Service reference 4.5.
    #[wasm_bindgen(js_name = eventIngestion)]
    pub fn event_ingestion(&self, query: &JsValue) -> Result<Call, Thrown> {
        let (start, end, dimensions, group_by) = convert::metrics_query(query)?;
        Ok(Call(self.0.event_ingestion(
            &start,
            &end,
            &dimensions,
            group_by.as_deref(),
        )?))
    }

    /// Service reference 4.2.
    #[wasm_bindgen(js_name = auditLogs)]
    pub fn audit_logs(&self, query: &JsValue) -> Result<Call, Thrown> {
        let query = Fields::of("query", query)?;
        Ok(Call(self.0.audit_logs(
            query.integer("page")?,
            query.integer("perPage")?,
        )?))
    }

    /// A long range, of which a table may hold some already.
    pub fn collect(&self, query: &JsValue, have: Option<CountTable>) -> Result<Collect, Thrown> {
        let have = have.map(tallyfold::CountTable::from);
        let options = convert::collect_options(query, have)?;
        Ok(self.0.collect(options)?.into())
    }

    /// Windows as they close.
    pub fn follow(&self, query: &JsValue) -> Result<Follow, Thrown> {
        Ok(self.0.follow(convert::follow_options(query)?)?.into())
    }

    /// Whether the windows between three instants add up.
    #[wasm_bindgen(js_name = probeAdditivity)]
    pub fn probe_additivity(&self, query: &JsValue) -> Result<Probe, Thrown> {
        let query = Fields::of("query", query)?;
        let metric = convert::metric_field(&query)?;
        let [start, middle, end] = [
            query.required_instant("start")?,
            query.required_instant("middle")?,
            query.required_instant("end")?,
        ];
        let dimensions = query.required_texts("dimensions")?;
        let edges = [&*start, &*middle, &*end];
        Ok(self.0.probe_additivity(metric, edges, &dimensions)?.into())
    }

    /// Grows with every change of a token.
    #[wasm_bindgen(js_name = tokenEpoch)]
    pub fn token_epoch(&self) -> u64 {
        self.0.token_epoch()
    }
}

/// One call in progress.
#[wasm_bindgen(js_name = CoreCall)]
pub struct Call(pub(crate) tallyfold::Call);

#[wasm_bindgen(js_class = CoreCall)]
impl Call {
    /// What to do next.
    pub fn step(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(convert::step(self.0.step(convert::now(now)?)?))
    }

    /// A response began.
    pub fn head(&mut self, status: &JsValue, headers: &JsValue) -> Result<bool, Thrown> {
        let status = convert::status(status)?;
        let headers = convert::strings("headers", headers)?;
        Ok(self.0.head(status, &convert::headers(&headers))?)
    }

    /// Some of its body came, as staged.
    pub fn chunk(&mut self, length: usize) -> Result<(), Thrown> {
        Ok(staged(length, |chunk| self.0.chunk(chunk))?)
    }

    /// Its body is complete.
    pub fn end(&mut self) -> Result<(), Thrown> {
        Ok(self.0.end()?)
    }

    /// The exchange broke.
    pub fn failed(&mut self, failure: &JsValue, detail: &JsValue) -> Result<(), Thrown> {
        let detail = convert::string("detail", detail)?;
        Ok(self.0.failed(convert::host_failure(failure)?, &detail)?)
    }

    /// The host's token.
    pub fn token(&mut self, token: &JsValue) -> Result<(), Thrown> {
        let (value, lifetime) = convert::token(token)?;
        Ok(self.0.token(value, lifetime.as_deref())?)
    }

    /// The host has no token.
    #[wasm_bindgen(js_name = tokenFailed)]
    pub fn token_failed(&mut self) -> Result<(), Thrown> {
        Ok(self.0.token_failed()?)
    }

    /// A table, or the text of a JSON document.
    pub fn output(&mut self) -> Result<JsValue, Thrown> {
        Ok(convert::output(self.0.output()?))
    }

    /// The request that has ended last, once.
    pub fn attempt(&mut self) -> JsValue {
        self.0
            .attempt()
            .map_or(JsValue::UNDEFINED, |attempt| convert::attempt(&attempt))
    }

    /// Gives up whatever it leads.
    pub fn close(&mut self) {
        self.0.close();
    }
}
