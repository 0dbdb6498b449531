//! `Series`: exact counts by window and dimension values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyTuple};
use tallyfold::TimeStep;

use crate::convert::{self, Reduced};
use crate::error::Result;
use crate::rows::{self, ROW, RowIterator, Rows};
use crate::table::CountTable;
use crate::{arrow, html};

/// A table's counts in the order of time: one row for each window and combination of dimension
/// values, from `CountTable.by_window`.
///
/// A series does not change. Its rows are sorted by window, then by their dimension values, in the
/// order of `dimensions`. Counts are numbers of events, as `int` from 0 to 2**64 - 1, never `float`
/// (service reference 2.2 and 2.3).
///
/// polars, pandas, duckdb and pyarrow read a series through `__arrow_c_stream__`: `window_start`
/// and `window_end` as timestamps in UTC, exact to the nanosecond, then the columns of a table.
///
/// >>> series = table.group_by("integration").by_window("15m")
/// >>> for row in series:
/// ...     print(row.window.start_text, row.dimensions["integration"], row.rates.delivery)
/// 2026-01-01T00:00:00Z email None
/// 2026-01-01T00:00:00Z warehouse 0.875
/// >>> import polars
/// >>> polars.DataFrame(series).columns
/// ['window_start', 'window_end', 'integration', 'success', 'errors', 'filtered']
#[pyclass(frozen, eq, module = "tallyfold")]
pub(crate) struct Series {
    series: Arc<tallyfold::Series>,
    /// What it was made of, which is what a pickle holds.
    table: Py<CountTable>,
    windows: PyOnceLock<Py<PyTuple>>,
}

impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        self.series == other.series
    }
}

#[pymethods]
impl Series {
    /// The names of the dimensions, in the order that rows are sorted by after the window.
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::names(py, self.series.dimensions())
    }

    /// `"event_delivery"` or `"event_ingestion"`, if the table knew it.
    #[getter]
    fn metric(&self) -> Option<&'static str> {
        self.series.metric().map(tallyfold::Metric::as_str)
    }

    /// The step in its largest unit, such as `"15m"`, `"90m"` and `"1h"`; `None` where the windows
    /// are those of the responses.
    #[getter]
    fn step(&self) -> Option<String> {
        self.series.step().map(|step| step.to_string())
    }

    /// The windows as `SeriesWindow` objects, sorted, also those without rows. Windows of which the
    /// table covers nothing are not among them.
    #[getter]
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(self.shared_windows(py)?.iter().collect())
    }

    /// The sum of all rows, as `Counts`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::counts(py, self.series.totals())
    }

    /// The series as JSON text, window by window, with counts as strings of digits; the same series
    /// gives the same text in every language. Nothing reads it back: save the table.
    ///
    /// >>> table.by_window("1h").to_json()[:31]
    /// '{"format":"tallyfold-series/1",'
    fn to_json(&self, py: Python<'_>) -> String {
        convert::detached(py, self.bytes(), || self.series.to_json())
    }

    /// The series as an Arrow C stream of one batch, in a capsule; `requested_schema` is not used.
    ///
    /// Raises:
    ///     ConfigError: `invalid_argument` for a window before 1677-09-21 or after 2262-04-11, which
    ///         Arrow's nanoseconds can't hold.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The protocol lets a producer answer with its own schema.
        drop(requested_schema);
        arrow::stream(py, self.bytes(), || arrow::series(&self.series))
    }

    /// The stream's schema, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        arrow::schema(py, self.bytes(), || arrow::series(&self.series))
    }

    fn __len__(&self) -> usize {
        self.series.len()
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
        let series = &self.series;
        let metric = series.metric().map_or("counts", tallyfold::Metric::as_str);
        let dimensions = self.dimensions(py)?.repr()?.to_string();
        let step = series.step().map(|step| format!(" of {step}"));
        let tallyfold::Counts {
            success,
            errors,
            filtered,
        } = series.totals();
        Ok(format!(
            "<Series: {metric} by {dimensions}, {} windows{}, {} rows, \
             success={success}, errors={errors}, filtered={filtered}>",
            series.windows().len(),
            step.unwrap_or_default(),
            series.len()
        ))
    }

    fn _repr_html_(&self) -> String {
        html::series(&self.series)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Reduced<'py, (Py<CountTable>, Option<String>)>> {
        let by_window = py.get_type::<CountTable>().getattr("by_window")?;
        Ok((by_window, (self.table.clone_ref(py), self.step())))
    }
}

impl Series {
    /// The counts of a table by window.
    pub(crate) fn of(table: &Bound<'_, CountTable>, step: Option<TimeStep>) -> Result<Self> {
        let own = table.get();
        let series = convert::detached(table.py(), own.bytes(), || own.0.by_window(step))?;
        Ok(Self {
            series: Arc::new(series),
            table: table.clone().unbind(),
            windows: PyOnceLock::new(),
        })
    }

    /// About how many bytes its rows are.
    fn bytes(&self) -> usize {
        self.series.len().saturating_mul(ROW)
    }

    /// The windows, one object each, which all rows share.
    fn shared_windows<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let windows = self.windows.get_or_try_init(py, || {
            convert::series_windows(py, self.series.windows()).map(Bound::unbind)
        })?;
        Ok(windows.bind(py))
    }
}

impl Rows for Series {
    fn rows(&self) -> usize {
        self.series.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::series_row(py, &self.series, self.shared_windows(py)?, index)
    }
}
