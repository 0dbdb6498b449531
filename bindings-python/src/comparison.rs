//! `compare`: what changed from one table to another.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use tallyfold::{Deltas, Presence};

use crate::convert::{self, Given, Reduced, fitting};
use crate::error::Result;
use crate::rows::{self, ROW, RowIterator, Rows};
use crate::table::CountTable;
use crate::{arrow, html};

/// Compares two tables, group by group.
///
/// The tables may cover any time: windows of other lengths, or the same time twice. Counts are
/// compared as they are; `before_coverage` and `after_coverage` say which time they are of.
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
pub(crate) fn compare(
    before: &Bound<'_, CountTable>,
    after: &Bound<'_, CountTable>,
) -> Result<Comparison> {
    let tables = (before.get(), after.get());
    let bytes = tables.0.bytes().saturating_add(tables.1.bytes());
    let comparison = convert::detached(before.py(), bytes, || {
        tallyfold::compare(&tables.0.0, &tables.1.0)
    })?;
    Ok(Comparison {
        comparison: Arc::new(comparison),
        tables: Some((before.clone().unbind(), after.clone().unbind())),
    })
}

/// What changed from one table to another: one row for each group of either, from `compare`.
///
/// A comparison does not change. Its rows are sorted by their dimension values, in the order of
/// `dimensions`. Counts are numbers of events (service reference 2.3); deltas are exact `int`, from
/// -(2**64 - 1) to 2**64 - 1.
///
/// polars, pandas, duckdb and pyarrow read a comparison through `__arrow_c_stream__`: a categorical
/// column for each dimension and `presence`; then for each count `before_…` and `after_…` as unsigned
/// 64-bit integers, 0 where the table lacks the group (a null would make pandas use floats), `delta_…`
/// as `decimal128(38, 0)`, and `share_…` as floats, null where there is no share.
///
/// >>> comparison = tallyfold.compare(table, table)
/// >>> [(row.presence, row.delta.success, row.share.success) for row in comparison]
/// [('both', 0, None), ('both', 0, None)]
/// >>> import polars
/// >>> polars.DataFrame(comparison).columns[:4]
/// ['integration', 'reason', 'presence', 'before_success']
#[pyclass(frozen, eq, module = "tallyfold")]
pub(crate) struct Comparison {
    comparison: Arc<tallyfold::Comparison>,
    /// What it was made of, which is what a pickle holds; `None` if the core made it by itself.
    tables: Option<(Py<CountTable>, Py<CountTable>)>,
}

impl PartialEq for Comparison {
    fn eq(&self, other: &Self) -> bool {
        self.comparison == other.comparison
    }
}

#[pymethods]
impl Comparison {
    /// The names of the dimensions, in the order that rows are sorted by.
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::names(py, self.comparison.dimensions())
    }

    /// `"event_delivery"` or `"event_ingestion"`, if the tables knew it.
    #[getter]
    fn metric(&self) -> Option<&'static str> {
        self.comparison.metric().map(tallyfold::Metric::as_str)
    }

    /// What the table before covers: sorted `Window` objects, with those that meet joined.
    #[getter]
    fn before_coverage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        convert::windows(py, self.comparison.before_coverage())
    }

    /// What the table after covers, likewise.
    #[getter]
    fn after_coverage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        convert::windows(py, self.comparison.after_coverage())
    }

    /// The totals of the table before, as `Counts`.
    #[getter]
    fn before_totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::counts(py, self.comparison.before_totals())
    }

    /// The totals of the table after, as `Counts`.
    #[getter]
    fn after_totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::counts(py, self.comparison.after_totals())
    }

    /// How the totals changed, as `Deltas`: the sum of the deltas of all rows.
    #[getter]
    fn total_delta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::deltas(py, self.comparison.total_delta())
    }

    /// The rows of the groups that only the table after has.
    #[getter(new)]
    fn added<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        rows::picked(self, py, self.comparison.positions(Presence::New))
    }

    /// The rows of the groups that only the table before has.
    #[getter]
    fn vanished<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        rows::picked(self, py, self.comparison.positions(Presence::Vanished))
    }

    /// The `n` rows with the largest change of `by`, up or down, largest first; equal changes in
    /// the order of the comparison.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` unless `by` is `success`, `errors` or `filtered`.
    ///
    /// >>> nothing = table.filter(integration="none")
    /// >>> everything = table.filter(integration=["none"])
    /// >>> tallyfold.compare(nothing, everything).top(5, by="success")
    /// []
    #[pyo3(signature = (n, by = "errors"))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        n: Given<usize>,
        by: &str,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let n = fitting("n", n)?;
        let positions = convert::detached(py, self.bytes(), || self.comparison.top(n, by))?;
        Ok(rows::picked(self, py, positions)?)
    }

    /// The comparison as JSON text, with counts as strings of digits, and deltas with a `-` where
    /// they are negative; the same comparison gives the same text in every language. Nothing reads
    /// it back: save the tables.
    ///
    /// >>> tallyfold.compare(table, table).to_json()[:35]
    /// '{"format":"tallyfold-comparison/1",'
    fn to_json(&self, py: Python<'_>) -> String {
        convert::detached(py, self.bytes(), || self.comparison.to_json())
    }

    /// The comparison as an Arrow C stream of one batch, in a capsule; `requested_schema` is not
    /// used.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The protocol lets a producer answer with its own schema.
        drop(requested_schema);
        arrow::stream(py, self.bytes(), || arrow::comparison(&self.comparison))
    }

    /// The stream's schema, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        arrow::schema(py, self.bytes(), || arrow::comparison(&self.comparison))
    }

    fn __len__(&self) -> usize {
        self.comparison.len()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        rows::item(self, key)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> RowIterator {
        RowIterator::forward(slf)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> RowIterator {
        RowIterator::backward(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let comparison = &self.comparison;
        let metric = comparison
            .metric()
            .map_or("counts", tallyfold::Metric::as_str);
        let dimensions = self.dimensions(py)?.repr()?.to_string();
        let Deltas {
            success,
            errors,
            filtered,
        } = comparison.total_delta();
        Ok(format!(
            "<Comparison: {metric} by {dimensions}, {} rows, \
             success={success:+}, errors={errors:+}, filtered={filtered:+}>",
            comparison.len()
        ))
    }

    fn _repr_html_(&self) -> String {
        html::comparison(&self.comparison)
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
    /// A comparison that the core has made, of tables that nobody keeps.
    pub(crate) fn of(comparison: tallyfold::Comparison) -> Self {
        Self {
            comparison: Arc::new(comparison),
            tables: None,
        }
    }

    /// About how many bytes its rows are.
    fn bytes(&self) -> usize {
        self.comparison.len().saturating_mul(2 * ROW)
    }
}

impl Rows for Comparison {
    fn rows(&self) -> usize {
        self.comparison.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::comparison_row(py, &self.comparison, index)
    }
}
