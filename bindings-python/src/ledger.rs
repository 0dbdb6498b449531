//! Running totals of settled windows. `tallyfold.Ledger` keeps them in memory or in a file.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tallyfold_export::{Addition, Format, Labels};

use crate::arguments::optional;
use crate::detach::detached;
use crate::error::{Failure, Result};
use crate::export::Pending;
use crate::host::TextOrBytes;
use crate::plain::package;
use crate::rows::Content;
use crate::table::CountTable;

/// Immutable totals: adding a revision makes new totals.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Totals(tallyfold_export::Ledger);

/// A counter: its name, its help text, the names of its labels, and for each group the labels' values and the count.
type Shown = (String, String, Vec<String>, Vec<(Vec<String>, u64)>);

#[pymethods]
impl Totals {
    /// Makes empty totals, or reads the totals of a stored document.
    #[new]
    #[pyo3(signature = (saved = None))]
    fn new(py: Python<'_>, saved: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let Some(saved) = saved.filter(|saved| !saved.is_none()) else {
            return Ok(Self(tallyfold_export::Ledger::default()));
        };
        let saved = TextOrBytes::of("saved", saved)?;
        let read = || tallyfold_export::Ledger::from_json(&saved);
        Ok(Self(detached(py, saved.len(), read)?))
    }

    /// Returns the totals after a revision, with the state of its follow. Adds the counts only if the revision is settled.
    fn added(
        &self,
        revision: &Bound<'_, PyAny>,
        state: &Bound<'_, PyAny>,
        allow_gap: &Bound<'_, PyAny>,
        now_ms: i64,
    ) -> Result<Self> {
        let py = revision.py();
        if !revision.is_instance(&package(py)?.getattr("Revision")?)? {
            let wanted = "want a Revision of a follow";
            return Err(Failure::wrong_type("revision", wanted, revision));
        }
        let wanted = "want the state of the follow: revisions.state()";
        let state: String =
            state.extract().map_err(|_| Failure::wrong_type("state", wanted, state))?;
        let allow_gap: bool = allow_gap
            .extract()
            .map_err(|_| Failure::wrong_type("allow_gap", "want True or False", allow_gap))?;
        let table = revision.getattr("table")?;
        let table = table.cast::<CountTable>().map_err(PyErr::from)?;
        let table = table.get().shared();
        let clock_ahead_s: f64 = revision.getattr("clock_ahead")?.extract()?;
        let addition = Addition {
            settled: revision.getattr("settled")?.extract()?,
            state,
            allow_gap,
            clock_ahead_ms: (clock_ahead_s * 1000.0).round() as u64,
        };
        let added = detached(py, Content::bytes(&*table), || {
            let mut ledger = self.0.clone();
            ledger.add_at(&table.windowed(), addition, now_ms)?;
            tallyfold::Result::<_>::Ok(ledger)
        })?;
        Ok(Self(added))
    }

    /// Returns the totals with a new timestamp: the time of the host's clock or, if the last revision has shown that this clock
    /// is ahead, the time of the service's clock. The timestamp is always later than the previous one.
    fn stamped(&self, now_ms: i64) -> Result<Self> {
        let mut ledger = self.0.clone();
        ledger.stamp_at(now_ms)?;
        Ok(Self(ledger))
    }

    /// The source for `Push`: the totals with their timestamp.
    fn pending(&self) -> Result<Pending> {
        Ok(Pending { source: self.0.totals()?, in_doubt: None })
    }

    /// The document to store.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// A message about a total above 2^53; `None` if there is no such total.
    #[getter]
    fn inexact(&self) -> Option<String> {
        self.0.note().map(|note| note.message())
    }

    /// The state of the follow.
    #[getter]
    fn state(&self) -> Option<&str> {
        self.0.state()
    }

    /// The end of the newest window that was added, as text and in microseconds since 1970.
    #[getter]
    fn settled_until(&self) -> Option<(String, i64)> {
        let end = self.0.settled_until()?;
        Some((end.to_string(), end.unix_us()))
    }

    /// The totals as counters.
    #[pyo3(signature = (labels = None, name = None))]
    fn counters(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> Result<Vec<Shown>> {
        let (labels, name) = names(py, labels, name)?;
        let counters = self.0.counters(&labels, name.as_deref())?;
        let shown = counters
            .into_iter()
            .map(|counter| (counter.name, counter.help, counter.labels, counter.samples));
        Ok(shown.collect())
    }

    /// The totals as OpenMetrics text, for a scrape.
    #[pyo3(signature = (labels = None, name = None))]
    fn openmetrics(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> Result<String> {
        let (labels, name) = names(py, labels, name)?;
        Ok(self.0.openmetrics(&labels, name.as_deref())?)
    }

    /// The media type of the text, for `Content-Type`.
    #[classattr]
    fn media_type() -> &'static str {
        Format::OpenMetrics.media_type()
    }
}

fn names(
    py: Python<'_>,
    labels: Option<&Bound<'_, PyAny>>,
    name: Option<&Bound<'_, PyAny>>,
) -> Result<(Labels, Option<String>)> {
    let none = PyDict::new(py).into_any();
    let labels: Option<Labels> = optional("labels", labels.unwrap_or(&none))?;
    let name = name.map(|name| optional("name", name)).transpose()?;
    Ok((labels.unwrap_or_default(), name.flatten()))
}
