//! [`tallyfold_health::Notifications`]: alerts for receivers.

use js_sys::Array;
use tallyfold::Timestamp;
use tallyfold_health::{
    Finding, Found, Incident, Notified, NotifyOptions, Receiver, ReceiverKind, ReceiverOptions,
};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Fields, names_of, options, required};
use crate::error::{Result, Thrown};
use crate::host;
use crate::plain::plain;
use crate::sending::Step;

/// Notifications in progress.
#[wasm_bindgen(js_name = CoreNotifications)]
pub struct Notifications(tallyfold_health::Notifications);

tallyfold::options! {
    /// The time, and the state of the previous notifications.
    struct Before {
        /// The time.
        now: Timestamp,
        /// The state of the previous notifications.
        state: Option<String> = None,
    }
}

#[wasm_bindgen(js_class = CoreNotifications)]
impl Notifications {
    /// Begins to notify receivers of the incidents and findings of a check, with the facade's options. The headers of the
    /// receivers are flat arrays. `others` are the names of options that the facade reads.
    #[wasm_bindgen(constructor)]
    pub fn new(
        incidents: JsValue,
        findings: JsValue,
        is_cut: bool,
        receivers: Vec<JsValue>,
        given: &JsValue,
        others: Vec<String>,
    ) -> Result<Self> {
        let wanted = "want the result of Rules.check";
        let refused = |_| Thrown::refused("check", wanted);
        let incidents: Vec<Incident> =
            serde_wasm_bindgen::from_value(incidents).map_err(refused)?;
        let findings: Vec<Finding> = serde_wasm_bindgen::from_value(findings).map_err(refused)?;
        let found = Found { incidents: &incidents, findings: &findings, is_cut };
        let with =
            |more: Vec<String>| -> Vec<String> { others.iter().cloned().chain(more).collect() };
        let of_notify = with(names_of::<NotifyOptions>().collect());
        let of_before = with(names_of::<Before>().collect());
        let before: Before = options("options", given, &texts(&of_notify))?;
        let mut sending: NotifyOptions = options("options", given, &texts(&of_before))?;
        sending.seed = host::random_seed();
        let now = before.now;
        let notified = before.state.map(|state| Notified::from_json(state.as_bytes()));
        let notified = notified.transpose().map_err(|error| error.with_argument("state"))?;
        let receivers: Vec<Receiver> = receivers.iter().map(receiver).collect::<Result<_>>()?;
        Ok(Self(tallyfold_health::Notifications::new(
            found,
            receivers,
            notified.unwrap_or_default(),
            &sending,
            now,
        )?))
    }

    /// What to do next.
    pub fn step(&mut self, now: &JsValue) -> Result<JsValue> {
        let step = self.0.step(host::now(now)?, |step| plain(&Step::from(step)))?;
        Ok(step.unwrap_or_else(|| plain(&Step::Done)))
    }

    /// Takes the status and headers of a response. Returns whether to pass its body.
    pub fn head(&mut self, status: u16, headers: Vec<String>) -> Result<bool> {
        Ok(self.0.under_way()?.head(status, &host::headers(&headers))?)
    }

    /// Takes the next bytes of the body. Returns whether to pass more of it.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        Ok(self.0.under_way()?.chunk(chunk)?)
    }

    /// Takes the end of the body.
    pub fn end(&mut self) -> Result<()> {
        Ok(self.0.under_way()?.end()?)
    }

    /// Takes the failure of the exchange.
    pub fn failed(&mut self, failure: &JsValue, detail: &str) -> Result<()> {
        let failure = required("failure", failure)?;
        Ok(self.0.under_way()?.failed(failure, detail)?)
    }

    /// The state for the next notifications, and what became of the messages to each receiver.
    pub fn finish(&mut self) -> Result<Array> {
        let (notified, outcomes) = self.0.finish();
        let receipts: Vec<_> = outcomes.iter().map(|outcome| &outcome.receipt).collect();
        Ok(Array::of2(&notified.to_json().into(), &plain(&receipts)))
    }
}

fn receiver(given: &JsValue) -> Result<Receiver> {
    let kind: ReceiverKind = required("kind", &Fields::of("receivers", given)?.get("kind")?)?;
    let options: ReceiverOptions = options("receivers", given, &["kind"])?;
    Ok(Receiver::new(kind, &options)?)
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
