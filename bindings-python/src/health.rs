//! Health: explains changes, and checks counts by rules.

use std::sync::Arc;

use pyo3::prelude::*;
use tallyfold::{TimeStep, Timestamp, Window};
use tallyfold_health::{ExplainOptions, IncidentHold, Measure, Observed, State};

use crate::arguments::{Named, instance, instant, keywords, required};
use crate::detach::detached;
use crate::error::Result;
use crate::host::TextOrBytes;
use crate::plain::plain;
use crate::rows::Content;
use crate::table::CountTable;

/// Explains the change from one table to another, as an `Explanation`. All options are keyword arguments.
#[pyfunction]
#[pyo3(signature = (before, now, measure, /, **named))]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyAny>,
    now: &Bound<'py, PyAny>,
    measure: &Bound<'py, PyAny>,
    named: Option<Named<'py>>,
) -> Result<Bound<'py, PyAny>> {
    let before = table("before", before)?;
    let now = table("now", now)?;
    let measure: Measure = required("measure", measure)?;
    let options: ExplainOptions = keywords(py, named, &[])?;
    let bytes = before.bytes() + now.bytes();
    let explained =
        detached(py, bytes, || tallyfold_health::explain(&before, &now, measure, &options))?;
    Ok(plain(py, &explained)?)
}

/// Computes what is usual in each slot of a range, as `Usual` objects.
#[pyfunction]
pub(crate) fn usual<'py>(
    py: Python<'py>,
    counts: &Bound<'py, PyAny>,
    measure: &Bound<'py, PyAny>,
    start: &Bound<'py, PyAny>,
    end: &Bound<'py, PyAny>,
    step: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let counts = table("table", counts)?;
    let measure: Measure = required("measure", measure)?;
    let range = Window::parse(&instant("start", start)?, &instant("end", end)?)?;
    let step: TimeStep = required("step", step)?;
    let usual =
        detached(py, bytes_of(&counts), || tallyfold_health::usual(&counts, range, step, measure))?;
    Ok(plain(py, &usual)?)
}

/// Reads a `CountTable` argument.
fn table(name: &str, value: &Bound<'_, PyAny>) -> Result<Arc<tallyfold::CountTable>> {
    let table = instance::<CountTable>(name, "want a CountTable", value)?;
    Ok(table.get().shared())
}

/// The rules of a rules file. `tallyfold.Rules` wraps them.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct RuleSet(tallyfold_health::Rules);

#[pymethods]
impl RuleSet {
    /// Parses the text of a rules file.
    #[new]
    fn new(text: &Bound<'_, PyAny>) -> Result<Self> {
        let text: String = required("text", text)?;
        let parsed = tallyfold_health::Rules::parse(&text);
        Ok(Self(parsed.map_err(|error| error.with_argument("text"))?))
    }

    /// The text of the standard rules, which apply if there is no rules file.
    #[classattr]
    fn standard() -> &'static str {
        tallyfold_health::Rules::STANDARD
    }

    /// The names of the rules.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    /// The counts that the rules need, as `Need` objects.
    fn needs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.needs())
    }

    /// The budgets of the rules, as `ErrorBudget` objects.
    fn budgets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.budgets())
    }

    /// Checks counts. Returns a `Check` without its state, and the state for the next check.
    fn check<'py>(
        &self,
        py: Python<'py>,
        delivery: &Bound<'py, PyAny>,
        ingestion: &Bound<'py, PyAny>,
        state: &Bound<'py, PyAny>,
        now: &Bound<'py, PyAny>,
    ) -> Result<(Bound<'py, PyAny>, String)> {
        let tables = Tables::of(delivery, ingestion)?;
        let before = (!state.is_none()).then(|| TextOrBytes::of("state", state));
        let before = before.transpose()?;
        let now = Timestamp::parse(&instant("now", now)?);
        let now = now.map_err(|error| error.with_argument("now"))?;
        let check = detached(py, tables.bytes(), || {
            let state = before.map(|state| State::from_json(&state));
            let state = state.transpose().map_err(|error| error.with_argument("state"))?;
            self.0.check(&tables.observed(), &state.unwrap_or_default(), now)
        })?;
        let state = String::from_utf8(check.state.to_json()).unwrap_or_default();
        Ok((plain(py, &check)?, state))
    }

    /// Returns what checks would have found in a range, as a `Replay`.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        delivery: &Bound<'py, PyAny>,
        ingestion: &Bound<'py, PyAny>,
        start: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let tables = Tables::of(delivery, ingestion)?;
        let range = Window::parse(&instant("start", start)?, &instant("end", end)?)?;
        let replay = detached(py, tables.bytes(), || self.0.replay(&tables.observed(), range))?;
        Ok(plain(py, &replay)?)
    }
}

/// Changes the hold on an incident, and returns the new state of the check. `acknowledge` records that somebody knows of the
/// incident, until it becomes more severe, or is over and comes back. `silence` silences it until a time. Any other action,
/// such as `unsilence`, removes the hold.
#[pyfunction]
pub(crate) fn hold(
    action: &str,
    state: &Bound<'_, PyAny>,
    incident: &Bound<'_, PyAny>,
    until: &Bound<'_, PyAny>,
    note: &Bound<'_, PyAny>,
) -> Result<String> {
    let of_state = |error: tallyfold::Error| error.with_argument("state");
    let mut state = State::from_json(&TextOrBytes::of("state", state)?).map_err(of_state)?;
    let incident: String = required("incident", incident)?;
    let note = (!note.is_none()).then(|| required("note", note)).transpose()?;
    let hold = match action {
        "acknowledge" => Some(IncidentHold::acknowledged(note)),
        "silence" => {
            let until = Timestamp::parse(&instant("until", until)?);
            let until = until.map_err(|error| error.with_argument("until"))?;
            Some(IncidentHold::silenced(until, note))
        }
        _ => None,
    };
    state.hold(&incident, hold)?;
    Ok(String::from_utf8(state.to_json()).unwrap_or_default())
}

/// The tables that the rules judge.
struct Tables {
    delivery: Option<Arc<tallyfold::CountTable>>,
    ingestion: Option<Arc<tallyfold::CountTable>>,
}

impl Tables {
    fn of(delivery: &Bound<'_, PyAny>, ingestion: &Bound<'_, PyAny>) -> Result<Self> {
        let given = |name, value: &Bound<'_, PyAny>| {
            let given = (!value.is_none()).then(|| table(name, value));
            given.transpose()
        };
        Ok(Self {
            delivery: given("delivery", delivery)?,
            ingestion: given("ingestion", ingestion)?,
        })
    }

    fn observed(&self) -> Observed<'_> {
        Observed { delivery: self.delivery.as_deref(), ingestion: self.ingestion.as_deref() }
    }

    /// The size to pass for work on both tables.
    fn bytes(&self) -> usize {
        let tables = [&self.delivery, &self.ingestion].into_iter().flatten();
        tables.map(|table| bytes_of(table)).sum()
    }
}

/// The size to pass for work on a history: the approximate size of its rows in bytes, multiplied by the number of its windows.
fn bytes_of(table: &tallyfold::CountTable) -> usize {
    table.bytes() * table.windows().len()
}
