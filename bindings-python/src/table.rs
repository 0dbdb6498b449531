//! `CountTable`: exact counts by dimension values.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};
use tallyfold::Window;

use crate::convert::{self, Document, Given, Instant, Reduced, Step, Texts, fitting};
use crate::error::Result;
use crate::rows::{self, ROW, RowIterator, Rows};
use crate::series::Series;
use crate::{arrow, html};

/// Exact counts, grouped by dimension values, of one response or of several merged ones.
///
/// A table does not change: its methods give new ones. Rows are sorted by their dimension values,
/// in the order of `dimensions`, whatever order the service sent them in. Counts are numbers of
/// events, as `int` from 0 to 2**64 - 1, never `float` (service reference 2.2 and 2.3).
///
/// polars, pandas, duckdb and pyarrow read a table through `__arrow_c_stream__`: a categorical
/// column for each dimension, then `success`, `errors` and `filtered` as unsigned 64-bit integers.
/// Where categories are in the way, such as for joining with text, one line makes text of them.
///
/// >>> len(table), table.totals
/// (2, Counts(success=7, errors=1, filtered=2))
/// >>> import pandas
/// >>> frame = pandas.DataFrame.from_arrow(table)
/// >>> frame.columns.to_list()
/// ['integration', 'reason', 'success', 'errors', 'filtered']
/// >>> frame = frame.astype(dict.fromkeys(table.dimensions, "str"))
/// >>> import polars
/// >>> frame = polars.DataFrame(table)
/// >>> frame = frame.with_columns(polars.col(*table.dimensions).cast(polars.String))
#[pyclass(frozen, eq, module = "tallyfold")]
#[derive(PartialEq)]
pub(crate) struct CountTable(pub(crate) tallyfold::CountTable);

#[pymethods]
impl CountTable {
    /// The names of the dimensions, in the order that rows are sorted by.
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::names(py, self.0.dimensions())
    }

    /// `"event_delivery"` or `"event_ingestion"`; `None` where an `Aggregator` was not told.
    #[getter]
    fn metric(&self) -> Option<&'static str> {
        self.0.metric().map(tallyfold::Metric::as_str)
    }

    /// The sum of all rows, as `Counts`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::counts(py, self.0.totals())
    }

    /// `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them, added up
    /// over all windows, as `Counts`; `None` for a filtered table, and where a sum is above
    /// 2**64 - 1 (service reference 2.2).
    #[getter]
    fn reported<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0
            .reported()
            .map(|reported| convert::counts(py, reported))
            .transpose()
    }

    /// Whether the reported totals are the sums of the counts, as `Reconciliation`. A difference
    /// raises nothing: the API is Beta, and the caller decides.
    #[getter]
    fn reconciliation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::reconciliation(py, self.0.reconciliation())
    }

    /// What the counts cover: sorted `Window` objects, with those that meet joined.
    #[getter]
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        convert::windows(py, &self.0.coverage())
    }

    /// The `Window` of each response in the table, sorted.
    #[getter]
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        convert::windows(py, &self.0.windows())
    }

    /// What was let pass because `tolerate` asked for it, as `Notes`.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::notes(py, self.0.notes())
    }

    /// Adds rows up by some of the dimensions, in the given order; by none, to one row (or to
    /// none, if there is none).
    ///
    /// Raises:
    ///     ConfigError: `unknown_dimension` for a name that the table lacks, `repeated_dimension`.
    ///
    /// >>> [(row.dimensions, row.success) for row in table.group_by("integration")]
    /// [({'integration': 'email'}, 0), ({'integration': 'warehouse'}, 7)]
    #[pyo3(signature = (*names))]
    fn group_by(&self, py: Python<'_>, names: &Bound<'_, PyTuple>) -> Result<Self> {
        let message = "want names one by one: group_by(\"integration\", \"reason\") or \
                       group_by(*names)";
        let names = names.extract();
        let names = names.map_err(|_| PyTypeError::new_err(message))?;
        let names: Vec<String> = fitting("names", names)?;
        Ok(Self(convert::detached(py, self.bytes(), || {
            self.0.group_by(&names)
        })?))
    }

    /// Keeps the rows whose value is the wanted one, or among the wanted ones, for each dimension
    /// named. What the service reported says nothing about a part, so `reported` becomes `None`.
    ///
    /// Raises:
    ///     ConfigError: `unknown_dimension` for a name that the table lacks.
    ///
    /// >>> table.filter(integration=["email", "push"]).totals
    /// Counts(success=0, errors=0, filtered=2)
    #[pyo3(signature = (**wanted))]
    fn filter(&self, py: Python<'_>, wanted: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        let mut pairs = Vec::new();
        for (name, values) in wanted.into_iter().flatten() {
            let name: String = name.extract()?;
            let values: Texts = fitting(&name, values.extract()?)?;
            pairs.push((name, values.0));
        }
        Ok(Self(convert::detached(py, self.bytes(), || {
            self.0.filter(&pairs)
        })?))
    }

    /// The `n` rows with the most `by`, most first; equal counts in the order of the table.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` unless `by` is `success`, `errors` or `filtered`.
    ///
    /// >>> table.top(1, by="errors")[0].dimensions["integration"]
    /// 'warehouse'
    #[pyo3(signature = (n, by = "errors"))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        n: Given<usize>,
        by: &str,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let n = fitting("n", n)?;
        let positions = convert::detached(py, self.bytes(), || self.0.top(n, by))?;
        Ok(rows::picked(self, py, positions)?)
    }

    /// Adds the counts of another time up with these; the order of merging makes no difference.
    ///
    /// With `replace`, windows of this table that overlap the other's make room for it. Each such
    /// window must lie inside what the other covers: a part can't be taken out of its counts.
    ///
    /// Raises:
    ///     ConfigError: `overlapping_coverage`, or `incompatible_tables` for other dimensions,
    ///         another metric or another filter.
    ///     ResponseError: `sum_overflow`.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> table.merge(later).coverage
    /// [Window('2026-01-01T00:00:00Z', '2026-01-01T00:30:00Z')]
    #[pyo3(signature = (other, *, replace = false))]
    fn merge(&self, py: Python<'_>, other: &Self, replace: bool) -> Result<Self> {
        let bytes = self.bytes().saturating_add(other.bytes());
        Ok(Self(convert::detached(py, bytes, || {
            self.0.merge(&other.0, replace)
        })?))
    }

    /// Adds the counts of any number of tables of different times up, all at once; their order makes
    /// no difference. One after the other, `merge` would pay for the growing sum each time.
    ///
    /// Raises:
    ///     ConfigError: `missing_argument` for no table at all, `overlapping_coverage`, or
    ///         `incompatible_tables`.
    ///     ResponseError: `sum_overflow`.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> tallyfold.CountTable.merge_all([later, table]) == table.merge(later)
    /// True
    #[staticmethod]
    fn merge_all(py: Python<'_>, tables: &Bound<'_, PyAny>) -> Result<Self> {
        let tables: Vec<Py<Self>> = tables
            .try_iter()?
            .map(|table| Ok(table?.cast_into::<Self>()?.unbind()))
            .collect::<PyResult<_>>()?;
        let bytes = tables.iter().map(|table| table.get().bytes()).sum();
        let tables = tables.iter().map(|table| &table.get().0);
        Ok(Self(convert::detached(py, bytes, || {
            tallyfold::CountTable::merge_all(tables)
        })?))
    }

    /// What the counts do not cover, as sorted `Window` objects: of `[start, end)`, or of the time
    /// from the table's first window to its last, wherever one of them is `None`.
    ///
    /// Raises:
    ///     ConfigError: for instants that can't be used.
    ///
    /// >>> table.gaps(end="2026-01-01T01:00:00Z")
    /// [Window('2026-01-01T00:15:00Z', '2026-01-01T01:00:00Z')]
    #[pyo3(signature = (start = None, end = None))]
    fn gaps<'py>(
        &self,
        py: Python<'py>,
        start: Option<Instant>,
        end: Option<Instant>,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let text = |at: Option<Instant>, name| at.map(|at| at.of(name)).transpose();
        let range = self.range(text(start, "start")?, text(end, "end")?)?;
        Ok(convert::windows(py, &self.0.gaps(range))?)
    }

    /// The counts by window. Without a step, each response keeps its own window. With one, each is
    /// added to the step of the UTC day that it lies in.
    ///
    /// Args:
    ///     step: digits and one of `s`, `m`, `h` and `d`, such as `"5m"`, `"15m"`, `"1h"` and
    ///         `"1d"`, or a `timedelta` of whole seconds; it must divide a day.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` for what is no such step; `unaligned_window` for a
    ///         window that reaches over the edge of a step, because counts can't be cut.
    ///
    /// >>> (hour,) = table.group_by("integration").by_window("1h").windows
    /// >>> hour.start_text, hour.end_text, hour.complete
    /// ('2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z', False)
    #[pyo3(signature = (step = None))]
    fn by_window(slf: &Bound<'_, Self>, step: Option<Step>) -> Result<Series> {
        let step = step.map(|step| step.of("step")).transpose()?;
        Series::of(slf, step)
    }

    /// The table as JSON text, with counts as strings of digits; the same table gives the same
    /// text in every language.
    ///
    /// >>> tallyfold.CountTable.from_json(table.to_json()) == table
    /// True
    fn to_json(&self, py: Python<'_>) -> String {
        convert::detached(py, self.bytes(), || self.0.to_json())
    }

    /// The table that `to_json` wrote, from `str` or bytes.
    ///
    /// Raises:
    ///     ResponseError: `invalid_table` for anything else, or the code of what is no JSON.
    ///
    /// >>> tallyfold.CountTable.from_json("{}")
    /// Traceback (most recent call last):
    ///     ...
    /// tallyfold.ResponseError: ...
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, py: Python<'_>, data: Document) -> Result<Self> {
        Ok(Self(convert::detached(py, data.len(), || {
            tallyfold::CountTable::from_json(&data)
        })?))
    }

    /// The table as an Arrow C stream of one batch, in a capsule; `requested_schema` is not used.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The protocol lets a producer answer with its own schema.
        drop(requested_schema);
        arrow::stream(py, self.bytes(), || arrow::table(&self.0))
    }

    /// The stream's schema, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        arrow::schema(py, self.bytes(), || arrow::table(&self.0))
    }

    fn __len__(&self) -> usize {
        self.0.len()
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
        let dimensions = self.dimensions(py)?.repr()?.to_string();
        let metric = self.0.metric().map_or("counts", tallyfold::Metric::as_str);
        let tallyfold::Counts {
            success,
            errors,
            filtered,
        } = self.0.totals();
        Ok(format!(
            "<CountTable: {metric} by {dimensions}, {} rows, \
             success={success}, errors={errors}, filtered={filtered}>",
            self.0.len()
        ))
    }

    fn _repr_html_(&self) -> String {
        html::table(&self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String,)>> {
        let from_json = slf.get_type().getattr("from_json")?;
        Ok((from_json, (slf.get().to_json(slf.py()),)))
    }
}

impl CountTable {
    /// A range, whose edges are those of the table where nothing else is said.
    fn range(&self, start: Option<String>, end: Option<String>) -> Result<Option<Window>> {
        let windows = self.0.windows();
        let edges = windows.first().zip(windows.last());
        Ok(match (start, end, edges) {
            (None, None, _) | (_, _, None) => None,
            (start, end, Some((first, last))) => {
                let start = start.unwrap_or_else(|| first.start().to_string());
                let end = end.unwrap_or_else(|| last.end().to_string());
                Some(Window::parse(&start, &end)?)
            }
        })
    }

    /// About how many bytes its rows are, those of each response included.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.0.windows().len().saturating_mul(self.0.len() + 1);
        rows.saturating_mul(ROW)
    }
}

impl Rows for CountTable {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::row(py, &self.0, index)
    }
}
