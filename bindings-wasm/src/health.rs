//! [`tallyfold_health`]: explains changes, and checks counts by rules.

use tallyfold::{CountTable, TimeStep, Timestamp, Window};
use tallyfold_health::{ExplainOptions, IncidentHold, Measure, Observed, State};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{options, required};
use crate::error::{Result, Returned};
use crate::plain::plain;
use crate::rows::Rows;

/// A table that was copied from the memory of the library.
#[wasm_bindgen(js_name = CoreTable)]
pub struct Table(CountTable);

#[wasm_bindgen(js_class = CoreTable)]
impl Table {
    /// Makes a table from its rows by window and the JSON of its grand totals.
    #[wasm_bindgen(constructor)]
    pub fn new(rows: Rows, totals: &str) -> Result<Self> {
        Ok(Self(rows.table(totals)?))
    }
}

/// Explains the change from one table to another, with the facade's options.
#[wasm_bindgen(js_name = explainChange)]
pub fn explain_change(
    before: &Table,
    now: &Table,
    measure: &JsValue,
    given: &JsValue,
) -> Result<JsValue> {
    let measure: Measure = required("measure", measure)?;
    let options: ExplainOptions = options("options", given, &[])?;
    let explained = tallyfold_health::explain(&before.0, &now.0, measure, &options)?;
    Ok(plain(&explained))
}

tallyfold::options! {
    /// The slots whose usual counts are computed.
    struct UsualOptions {
        /// The start of the range.
        start: Timestamp,
        /// The end of the range.
        end: Timestamp,
        /// The length of a slot.
        step: TimeStep = TimeStep::QUARTER,
    }
}

/// Returns what is usual in each slot of a range.
#[wasm_bindgen(js_name = usualValues)]
pub fn usual(table: &Table, measure: &JsValue, given: &JsValue) -> Result<JsValue> {
    let measure: Measure = required("measure", measure)?;
    let given: UsualOptions = options("options", given, &[])?;
    let range = Window::new(given.start, given.end)?;
    let usual = tallyfold_health::usual(&table.0, range, given.step, measure)?;
    Ok(plain(&usual))
}

tallyfold::options! {
    /// The time of a check, and the state of the previous check.
    struct CheckOptions {
        /// The time of the check.
        now: Timestamp,
        /// The state of the previous check.
        state: Option<String> = None,
    }
}

tallyfold::options! {
    /// The range to replay.
    struct ReplayOptions {
        /// The start of the range.
        start: Timestamp,
        /// The end of the range.
        end: Timestamp,
    }
}

tallyfold::options! {
    /// What is recorded about an incident that somebody knows of.
    struct AcknowledgeOptions {
        /// Who knows of it, or what is done about it.
        note: Option<String> = None,
    }
}

tallyfold::options! {
    /// What is recorded about an incident that is silenced.
    struct SilenceOptions {
        /// The end of the silence.
        until: String [Instant],
        /// Why it is silenced.
        note: Option<String> = None,
    }
}

/// Records in the state of a check that somebody knows of an incident, and returns the new state.
#[wasm_bindgen(js_name = acknowledgeIncident)]
pub fn acknowledge(state: &JsValue, incident: &JsValue, given: &JsValue) -> Result<String> {
    let AcknowledgeOptions { note } = options("options", given, &[])?;
    hold(state, incident, Some(IncidentHold::acknowledged(note)))
}

/// Silences an incident until a time, even if it becomes more severe, and returns the new state.
#[wasm_bindgen(js_name = silenceIncident)]
pub fn silence(state: &JsValue, incident: &JsValue, given: &JsValue) -> Result<String> {
    let SilenceOptions { until, note } = options("options", given, &[])?;
    let until = Timestamp::parse(&until).map_err(|error| error.with_argument("until"))?;
    hold(state, incident, Some(IncidentHold::silenced(until, note)))
}

/// Removes the acknowledgement or the silence of an incident, and returns the new state.
#[wasm_bindgen(js_name = unsilenceIncident)]
pub fn unsilence(state: &JsValue, incident: &JsValue) -> Result<String> {
    hold(state, incident, None)
}

fn hold(state: &JsValue, incident: &JsValue, hold: Option<IncidentHold>) -> Result<String> {
    let state: String = required("state", state)?;
    let incident: String = required("incident", incident)?;
    let mut state =
        State::from_json(state.as_bytes()).map_err(|error| error.with_argument("state"))?;
    state.hold(&incident, hold)?;
    Ok(String::from_utf8(state.to_json()).unwrap_or_default())
}

/// The names of the tables to judge, which the facade accepts in addition to the options.
const TABLES: &[&str] = &["delivery", "ingestion"];

/// The rules of a file.
#[wasm_bindgen(js_name = CoreRules)]
pub struct Rules(tallyfold_health::Rules);

#[wasm_bindgen(js_class = CoreRules)]
impl Rules {
    /// Reads the text of a file.
    pub fn parse(text: &JsValue) -> Result<Self> {
        let text: String = required("text", text)?;
        let parsed = tallyfold_health::Rules::parse(&text);
        Ok(Self(parsed.map_err(|error| error.with_argument("text"))?))
    }

    /// The text of the standard rules.
    pub fn standard() -> String {
        tallyfold_health::Rules::STANDARD.to_owned()
    }

    /// The names of the rules.
    pub fn names(&self) -> Vec<String> {
        self.0.names().into_iter().map(str::to_owned).collect()
    }

    /// The counts that the rules need.
    pub fn needs(&self) -> Returned {
        Ok(plain(&self.0.needs()))
    }

    /// The error budgets of the rules.
    pub fn budgets(&self) -> Returned {
        Ok(plain(&self.0.budgets()))
    }

    /// Checks counts. Returns what was found, and the state for the next check.
    pub fn check(&self, counts: &Counts, given: &JsValue) -> Result<Checked> {
        let given: CheckOptions = options("options", given, TABLES)?;
        let state = given.state.map(|state| State::from_json(state.as_bytes()));
        let state = state.transpose().map_err(|error| error.with_argument("state"))?;
        let state = state.unwrap_or_default();
        Ok(Checked(self.0.check(&counts.observed(), &state, given.now)?))
    }

    /// Returns what checks would have found in a range.
    pub fn replay(&self, counts: &Counts, given: &JsValue) -> Result<JsValue> {
        let given: ReplayOptions = options("options", given, TABLES)?;
        let range = Window::new(given.start, given.end)?;
        Ok(plain(&self.0.replay(&counts.observed(), range)?))
    }
}

/// The counts to judge.
#[wasm_bindgen(js_name = CoreObserved)]
#[derive(Default)]
pub struct Counts {
    delivery: Option<CountTable>,
    ingestion: Option<CountTable>,
}

#[wasm_bindgen(js_class = CoreObserved)]
impl Counts {
    /// No counts yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds counts of delivery.
    pub fn delivery(&mut self, table: Table) {
        self.delivery = Some(table.0);
    }

    /// Adds counts of ingestion.
    pub fn ingestion(&mut self, table: Table) {
        self.ingestion = Some(table.0);
    }
}

impl Counts {
    fn observed(&self) -> Observed<'_> {
        Observed { delivery: self.delivery.as_ref(), ingestion: self.ingestion.as_ref() }
    }
}

/// The result of a check.
#[wasm_bindgen(js_name = CoreCheck)]
pub struct Checked(tallyfold_health::Check);

#[wasm_bindgen(js_class = CoreCheck)]
impl Checked {
    /// Everything except the state.
    pub fn found(&self) -> Returned {
        Ok(plain(&self.0))
    }

    /// The state as JSON.
    pub fn state(&self) -> String {
        String::from_utf8(self.0.state.to_json()).unwrap_or_default()
    }
}
