//! `Aggregator`: response bytes in, a table out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use tallyfold::AggregatorOptions;

use crate::arguments::{Named, keywords, required};
use crate::detach::locked;
use crate::error::Result;
use crate::host::{Chunk, random_seed};
use crate::table::CountTable;

/// Parses and aggregates the bytes of one event metrics result (service reference 2.2) into a
/// `CountTable`, chunk by chunk as they arrive. Memory grows with groups, not with bytes.
///
/// Args:
///     dimensions: the dimensions that were requested, one to four names.
///     group_by: the dimensions to keep; `None` keeps all.
///     metric: `"event_delivery"` or `"event_ingestion"`, if it is known.
///     window: the `(start, end)` that was requested, to check the response against.
///     limits: `Limits` of the response, if the defaults don't fit.
///     tolerate: names of deviations to tolerate; `CountTable.notes` counts them:
///         `"repeated_combination"`, `"null_dimension"`.
///
/// Raises:
///     ConfigError: for arguments that can't be used.
///
/// >>> aggregator = tallyfold.Aggregator(["integration"])
/// >>> aggregator.push(b'{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z", ')
/// >>> aggregator.push(b'"totalDelivered": "7", "totalErrors": "0", "totalFiltered": "0", ')
/// >>> aggregator.push(b'"counts": [{"success": "7", "errors": "0", "filtered": "0", ')
/// >>> aggregator.push(b'"dimensions": {"integration": "warehouse"}}]}')
/// >>> aggregator.finish().totals
/// Counts(success=7, errors=0, filtered=0)
#[pyclass(frozen, module = "tallyfold")]
pub(crate) struct Aggregator {
    core: Mutex<tallyfold::Aggregator>,
    pushed: AtomicUsize,
}

#[pymethods]
impl Aggregator {
    #[new]
    #[pyo3(signature = (dimensions, group_by = None, **named))]
    fn new(
        dimensions: &Bound<'_, PyAny>,
        group_by: Option<&Bound<'_, PyAny>>,
        named: Option<Named<'_>>,
    ) -> Result<Self> {
        let py = dimensions.py();
        let dimensions: Vec<String> = required("dimensions", dimensions)?;
        let options = keywords::<AggregatorOptions>(py, named, &[])?
            .group_by(group_by.map(|names| required("group_by", names)).transpose()?)
            .hash_seed(random_seed());
        Ok(Self {
            core: Mutex::new(tallyfold::Aggregator::new(&dimensions, options)?),
            pushed: AtomicUsize::new(0),
        })
    }

    /// Reads the next bytes of the response, any number of them.
    ///
    /// Raises:
    ///     ResponseError: as soon as the bytes can't be a valid response. Every further call raises
    ///         the same error.
    ///
    /// >>> tallyfold.Aggregator(["integration"]).push(b"<html>")
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    fn push(&self, py: Python<'_>, chunk: &Bound<'_, PyAny>) -> Result<()> {
        let chunk = Chunk::of("chunk", chunk)?;
        self.pushed.fetch_add(chunk.len(), Ordering::Relaxed);
        Ok(locked(py, &self.core, chunk.len(), |aggregator| aggregator.push(&chunk))?)
    }

    /// Ends the response and returns its table, once.
    ///
    /// Raises:
    ///     ResponseError: `truncated_body` or `empty_body` if bytes are missing, or the error that
    ///         `push` raised.
    ///     ConfigError: `out_of_order` for a second call.
    ///
    /// >>> tallyfold.Aggregator(["integration"]).finish()
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, CountTable>> {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let table = locked(py, &self.core, pushed, tallyfold::Aggregator::finish)?;
        Ok(CountTable::made(py, table)?)
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Aggregator>"
    }
}
