//! `Aggregator`: response bytes in, a table out.

use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tallyfold::{AggregatorOptions, Metric, Tolerate};

use crate::convert::{Chunk, Given, Instant, fitting, fitting_if, locked, random_seed};
use crate::error::{Failure, Result};
use crate::table::CountTable;

/// Folds the bytes of one event metrics result (service reference 2.2) into a `CountTable`, chunk
/// by chunk as they arrive. Memory grows with groups, not with bytes.
///
/// Args:
///     dimensions: the dimensions that were requested, one to four names.
///     group_by: those of them to keep; all when `None`.
///     metric: `"event_delivery"` or `"event_ingestion"`, if it is known.
///     window: the `(start, end)` that was requested, to check the response against.
///     limits: `Limits` other than the usual ones.
///     tolerate: names of deviations to let pass and count in `CountTable.notes`:
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
    #[pyo3(signature = (
        dimensions, group_by = None, *, metric = None, window = None, limits = None,
        tolerate = Vec::new(),
    ))]
    fn new(
        dimensions: Given<Vec<String>>,
        group_by: Option<Given<Vec<String>>>,
        metric: Option<&str>,
        window: Option<(Instant, Instant)>,
        limits: Option<&Bound<'_, Limits>>,
        tolerate: Vec<String>,
    ) -> Result<Self> {
        let dimensions = fitting("dimensions", dimensions)?;
        let window =
            window.map(|(start, end)| Ok::<_, Failure>((start.of("start")?, end.of("end")?)));
        let options = AggregatorOptions {
            group_by: fitting_if("group_by", group_by)?,
            metric: metric.map(Metric::from_name).transpose()?,
            window: window.transpose()?,
            limits: limits.map(|limits| limits.get().0).unwrap_or_default(),
            tolerate: Tolerate::parse(&tolerate)?,
            hash_seed: random_seed(),
        };
        Ok(Self {
            core: Mutex::new(tallyfold::Aggregator::new(&dimensions, options)?),
            pushed: AtomicUsize::new(0),
        })
    }

    /// Takes the next bytes of the response, any number of them.
    ///
    /// Raises:
    ///     ResponseError: as soon as the bytes can't be a right response; then every further call
    ///         raises it again.
    ///
    /// >>> tallyfold.Aggregator(["integration"]).push(b"<html>")
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    fn push(&self, py: Python<'_>, chunk: Chunk) -> Result<()> {
        self.pushed.fetch_add(chunk.len(), Ordering::Relaxed);
        Ok(locked(py, &self.core, chunk.len(), |aggregator| {
            aggregator.push(&chunk)
        })?)
    }

    /// Ends the response and gives its table, once.
    ///
    /// Raises:
    ///     ResponseError: `truncated_body` or `empty_body` where bytes are missing, or what `push`
    ///         raised.
    ///     ConfigError: `out_of_order` for a second call.
    ///
    /// >>> tallyfold.Aggregator(["integration"]).finish()
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    fn finish(&self, py: Python<'_>) -> Result<CountTable> {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let table = locked(py, &self.core, pushed, tallyfold::Aggregator::finish)?;
        Ok(CountTable(table))
    }

    #[allow(clippy::unused_self, reason = "Python's protocol")]
    fn __repr__(&self) -> &'static str {
        "<Aggregator>"
    }
}

/// How much of a response is too much; each limit has an error code of its own.
///
/// Args:
///     depth: how deeply values may be nested.
///     string_bytes: the bytes of one string.
///     keys: the keys of one object.
///     body_bytes: the bytes of one body.
///     groups: the rows of one table.
///
/// >>> tallyfold.Limits(groups=1000).groups
/// 1000
#[pyclass(frozen, eq, hash, module = "tallyfold")]
#[derive(PartialEq)]
pub(crate) struct Limits(pub(crate) tallyfold::Limits);

impl Hash for Limits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The core's limits are never a key there, and have no hash of their own.
        let tallyfold::Limits {
            depth,
            string_bytes,
            keys,
            body_bytes,
            groups,
        } = self.0;
        (depth, string_bytes, keys, body_bytes, groups).hash(state);
    }
}

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (
        *, depth = None, string_bytes = None, keys = None, body_bytes = None, groups = None
    ))]
    fn new(
        depth: Option<Given<usize>>,
        string_bytes: Option<Given<usize>>,
        keys: Option<Given<usize>>,
        body_bytes: Option<Given<u64>>,
        groups: Option<Given<usize>>,
    ) -> Result<Self> {
        let usual = tallyfold::Limits::default();
        Ok(Self(tallyfold::Limits {
            depth: fitting_if("depth", depth)?.unwrap_or(usual.depth),
            string_bytes: fitting_if("string_bytes", string_bytes)?.unwrap_or(usual.string_bytes),
            keys: fitting_if("keys", keys)?.unwrap_or(usual.keys),
            body_bytes: fitting_if("body_bytes", body_bytes)?.unwrap_or(usual.body_bytes),
            groups: fitting_if("groups", groups)?.unwrap_or(usual.groups),
        }))
    }

    /// How deeply values may be nested.
    #[getter]
    fn depth(&self) -> usize {
        self.0.depth
    }

    /// The bytes of one string.
    #[getter]
    fn string_bytes(&self) -> usize {
        self.0.string_bytes
    }

    /// The keys of one object.
    #[getter]
    fn keys(&self) -> usize {
        self.0.keys
    }

    /// The bytes of one body.
    #[getter]
    fn body_bytes(&self) -> u64 {
        self.0.body_bytes
    }

    /// The rows of one table.
    #[getter]
    fn groups(&self) -> usize {
        self.0.groups
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, ())> {
        let own = slf.get();
        let limits = PyDict::new(slf.py());
        limits.set_item("depth", own.depth())?;
        limits.set_item("string_bytes", own.string_bytes())?;
        limits.set_item("keys", own.keys())?;
        limits.set_item("body_bytes", own.body_bytes())?;
        limits.set_item("groups", own.groups())?;
        let partial = slf.py().import("functools")?.getattr("partial")?;
        let make = partial.call((slf.get_type(),), Some(&limits))?;
        Ok((make, ()))
    }

    fn __repr__(&self) -> String {
        let tallyfold::Limits {
            depth,
            string_bytes,
            keys,
            body_bytes,
            groups,
        } = self.0;
        format!(
            "Limits(depth={depth}, string_bytes={string_bytes}, keys={keys}, \
             body_bytes={body_bytes}, groups={groups})"
        )
    }
}
