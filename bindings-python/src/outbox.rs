//! The state of the pushes of a follow. `tallyfold.Outbox` keeps it in a file.

use pyo3::prelude::*;
use tallyfold_export::Format;

use crate::arguments::required;
use crate::detach::detached;
use crate::error::{Failure, Result};
use crate::export::{Exported, Pending};
use crate::host::TextOrBytes;
use crate::push::Finished;

/// An immutable outbox: each action makes a new one.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct Held(tallyfold_export::Outbox);

#[pymethods]
impl Held {
    /// Makes an empty outbox, or reads one from a stored document.
    #[new]
    #[pyo3(signature = (saved = None))]
    fn new(py: Python<'_>, saved: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let Some(saved) = saved.filter(|saved| !saved.is_none()) else {
            return Ok(Self(tallyfold_export::Outbox::default()));
        };
        let saved = TextOrBytes::of("saved", saved)?;
        let read = || tallyfold_export::Outbox::from_json(&saved);
        Ok(Self(detached(py, saved.len(), read)?))
    }

    /// Returns the outbox with a revision to send, and the state of its follow after it.
    fn put(
        &self,
        revision: &Bound<'_, PyAny>,
        state: &Bound<'_, PyAny>,
        format: &Bound<'_, PyAny>,
    ) -> Result<Self> {
        let wrong = || Failure::wrong_type("revision", "want a Revision of a follow", revision);
        let given = Exported::of(revision).map_err(|_| wrong())?;
        if !matches!(given, Exported::Revision { .. }) {
            return Err(wrong());
        }
        let wanted = "want the state of the follow: revisions.state()";
        let state: String =
            state.extract().map_err(|_| Failure::wrong_type("state", wanted, state))?;
        let format: Format = required("format", format)?;
        let mut outbox = self.0.clone();
        outbox.put_source(&given.source(), state, format)?;
        Ok(Self(outbox))
    }

    /// How many samples of the pending revision are finished; `None` if no revision is pending.
    fn finished(&self, format: &Bound<'_, PyAny>) -> Result<Option<u64>> {
        Ok(self.0.finished(required("format", format)?)?)
    }

    /// The pending revision, and how many of its samples are finished; `None` if no revision is pending.
    fn pending(&self, format: &Bound<'_, PyAny>) -> Result<Option<(Pending, u64)>> {
        let pending = self.0.pending(required("format", format)?)?;
        let in_doubt = Some(self.0.in_doubt());
        Ok(pending.map(|(source, finished)| (Pending { source, in_doubt }, finished)))
    }

    /// Returns the outbox with the numbers of finished samples and of samples in doubt that a push reports.
    fn finish(&self, finished: &Finished) -> Self {
        let mut outbox = self.0.clone();
        outbox.finish(finished.samples, finished.in_doubt);
        Self(outbox)
    }

    /// How many samples were being sent when a push ended early, and were not in the report of any push yet.
    #[getter]
    fn in_doubt(&self) -> u64 {
        self.0.in_doubt()
    }

    /// Returns the outbox after a report has shown this number of samples in doubt.
    fn acknowledge(&self, samples: u64) -> Self {
        let mut outbox = self.0.clone();
        outbox.acknowledge(samples);
        Self(outbox)
    }

    /// Returns the outbox without the pending revision.
    fn clear(&self) -> Self {
        let mut outbox = self.0.clone();
        outbox.clear();
        Self(outbox)
    }

    /// The state of the follow.
    #[getter]
    fn state(&self) -> Option<&str> {
        self.0.state()
    }

    /// The document to store.
    fn to_json(&self) -> String {
        self.0.to_json()
    }
}
