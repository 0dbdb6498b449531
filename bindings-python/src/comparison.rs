//! `compare`: what changed from one table to another.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tallyfold::{Frame as _, HtmlFrame, Presence};

use crate::arguments::instance;
use crate::detach::detached;
use crate::error::Result;
use crate::frame::{self, Frame, Reduced};
use crate::plain::{object, plain};
use crate::rows::{self, Content, Rows};
use crate::table::CountTable;

/// Compares two tables, group by group.
///
/// The tables may cover any times: windows of different lengths, or the same time. Counts are
/// not scaled; `before_coverage` and `after_coverage` show the covered times.
///
/// Raises:
///     ConfigError: `incompatible_tables` for other dimensions, another metric or another filter.
///     ResponseError: `group_limit` if the values of a dimension take more than 1 GiB.
///
/// >>> sandbox.record("2026-01-01T00:20:00Z", "errors", integration="warehouse", count=4, **event)
/// >>> later = client.event_delivery(
/// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
/// ... )
/// >>> comparison = tallyfold.compare(table, later)
/// >>> comparison.total_delta
/// Deltas(success=-7, errors=3, filtered=-2)
/// >>> [(row.dimensions["integration"], row.delta.errors) for row in comparison.top(1)]
/// [('warehouse', 3)]
/// >>> [row.dimensions["integration"] for row in comparison.vanished]
/// ['email']
#[pyfunction]
pub(crate) fn compare<'py>(
    before: &Bound<'py, PyAny>,
    after: &Bound<'py, PyAny>,
) -> Result<Bound<'py, Comparison>> {
    let py = before.py();
    let table = |name, value| instance::<CountTable>(name, "want a CountTable", value);
    let (before, after) = (table("before", before)?, table("after", after)?);
    let [one, other] = [before, after].map(|table| table.get().core());
    let bytes = one.bytes().saturating_add(other.bytes());
    let comparison = detached(py, bytes, || tallyfold::compare(one, other))?;
    let tables = (before.clone().unbind(), after.clone().unbind());
    Ok(Comparison::made(py, comparison, Some(tables))?)
}

/// The changes from one table to another: one row for each group that occurs in either table.
/// `compare` returns it.
///
/// A comparison is immutable. Its rows are sorted by their dimension values, in the order of
/// `dimensions`. Counts are numbers of events (service reference 2.3); deltas are exact `int`, from
/// -(2**64 - 1) to 2**64 - 1.
///
/// polars, pandas, duckdb and pyarrow read a comparison through `__arrow_c_stream__`. The columns of the
/// dimensions and `presence` are categorical. For each count, there are `before_…` and `after_…` as
/// unsigned 64-bit integers, `delta_…` as signed 64-bit integers, and `share_…` as floats. If a table
/// lacks the group, its counts are 0, because a null would make pandas use floats. If there is no share,
/// `share_…` is null. Use `delta_…` instead of subtracting: a difference of unsigned integers wraps around
/// below 0.
///
/// >>> comparison = tallyfold.compare(table, table)
/// >>> [(row.presence, row.delta.success, row.share.success) for row in comparison]
/// [('both', 0, None), ('both', 0, None)]
/// >>> import polars
/// >>> polars.DataFrame(comparison).columns[:4]
/// ['integration', 'reason', 'presence', 'before_success']
#[pyclass(frozen, eq, extends = Frame, module = "tallyfold")]
pub(crate) struct Comparison {
    core: Arc<tallyfold::Comparison>,
    /// The two tables, which a pickle contains; `None` if the core made the comparison.
    tables: Option<(Py<CountTable>, Py<CountTable>)>,
}

impl PartialEq for Comparison {
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

#[pymethods]
impl Comparison {
    /// The time that the table `before` covers: sorted `Window` objects; adjacent windows are joined.
    #[getter]
    fn before_coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, self.core.before_coverage())
    }

    /// The time that the table `after` covers: sorted `Window` objects; adjacent windows are joined.
    #[getter]
    fn after_coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, self.core.after_coverage())
    }

    /// The totals of the table `before`, as `Counts`.
    #[getter]
    fn before_totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.core.before_totals())
    }

    /// The totals of the table `after`, as `Counts`.
    #[getter]
    fn after_totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.core.after_totals())
    }

    /// How the totals changed, as `Deltas`: the sum of the deltas of all rows.
    #[getter]
    fn total_delta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.core.total_delta())
    }

    /// The rows of the groups that occur only in the table `after`.
    #[getter(new)]
    fn added<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        rows::picked(&*self.core, py, self.core.positions(Presence::New))
    }

    /// The rows of the groups that occur only in the table `before`.
    #[getter]
    fn vanished<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        rows::picked(&*self.core, py, self.core.positions(Presence::Vanished))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let delta = self.core.total_delta();
        let signed =
            [delta.success, delta.errors, delta.filtered].map(|delta| format!("{delta:+}"));
        frame::repr(py, "Comparison", &*self.core, "", signed)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Reduced<'py, (Py<CountTable>, Py<CountTable>)>> {
        let Some((before, after)) = &self.tables else {
            let message =
                "the tables of this comparison were not kept: it can't be pickled or copied";
            return Err(PyTypeError::new_err(message));
        };
        let compare = py.import("tallyfold")?.getattr("compare")?;
        Ok((compare, (before.clone_ref(py), after.clone_ref(py))))
    }
}

impl Comparison {
    /// The core's comparison, which may outlive this object.
    pub(crate) fn shared(&self) -> Arc<tallyfold::Comparison> {
        Arc::clone(&self.core)
    }

    /// Makes the Python object of a core comparison. `tables` are the compared tables.
    pub(crate) fn made(
        py: Python<'_>,
        core: tallyfold::Comparison,
        tables: Option<(Py<CountTable>, Py<CountTable>)>,
    ) -> PyResult<Bound<'_, Self>> {
        let core = Arc::new(core);
        let content = Arc::clone(&core);
        Frame::made(py, Self { core, tables }, content)
    }
}

impl Content for tallyfold::Comparison {
    fn core(&self) -> &(dyn HtmlFrame + Send + Sync) {
        self
    }
}

impl Rows for tallyfold::Comparison {
    fn length(&self) -> usize {
        self.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(row) = tallyfold::Frame::row(self, index) else {
            return Ok(None);
        };
        let fields = (
            PyTuple::new(py, self.dimensions().names())?,
            PyTuple::new(py, row.values())?,
            row.presence().as_str(),
            plain(py, &row.before())?,
            plain(py, &row.after())?,
            plain(py, &row.delta())?,
            plain(py, &row.share())?,
        );
        object(py, "ComparisonRow", fields).map(Some)
    }
}
