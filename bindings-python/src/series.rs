//! `Series`: exact counts by window and dimension values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use tallyfold::{Frame as _, HtmlFrame};

use crate::frame::{self, Frame, Reduced};
use crate::plain::{object, plain};
use crate::rows::{Content, Rows};

/// A table's counts in the order of time: one row for each window and combination of dimension
/// values. `CountTable.by_window` makes it.
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
#[pyclass(frozen, eq, extends = Frame, module = "tallyfold")]
pub(crate) struct Series(Arc<SeriesRows>);

impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        self.0.series == other.0.series
    }
}

/// The core's series, and what its rows share.
struct SeriesRows {
    series: tallyfold::Series,
    /// The table and step that it was made of, which a pickle contains.
    table: Py<PyAny>,
    windows: PyOnceLock<Py<PyList>>,
}

#[pymethods]
impl Series {
    /// The step in its largest unit, such as `"15m"`, `"90m"` and `"1h"`; `None` if the windows are
    /// those of the responses.
    #[getter]
    fn step(&self) -> Option<String> {
        self.0.series.step().map(|step| step.to_string())
    }

    /// The windows as `SeriesWindow` objects, sorted, including those without rows. Windows of
    /// which the table covers nothing are left out.
    #[getter]
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.windows(py)?.call_method0("copy")
    }

    /// The sum of all rows, as `Counts`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.series.totals())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let series = &self.0.series;
        let step = series.step().map(|step| format!(" of {step}"));
        let windows = series.windows().len();
        let middle = format!("{windows} windows{}, ", step.unwrap_or_default());
        frame::repr(py, "Series", series, &middle, series.totals().each())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py, (Option<String>,)>> {
        let by_window = self.0.table.bind(py).getattr("by_window")?;
        Ok((by_window, (self.step(),)))
    }
}

impl Series {
    /// A series of the core, of the counts of a table.
    pub(crate) fn made<'py>(
        table: &Bound<'py, PyAny>,
        series: tallyfold::Series,
    ) -> PyResult<Bound<'py, Self>> {
        let own = Arc::new(SeriesRows {
            series,
            table: table.clone().unbind(),
            windows: PyOnceLock::new(),
        });
        Frame::made(table.py(), Self(Arc::clone(&own)), own)
    }
}

impl SeriesRows {
    /// The windows, one object each, which all rows share.
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyList>> {
        let windows = self.windows.get_or_try_init(py, || {
            let windows = plain(py, self.series.windows())?;
            PyResult::Ok(windows.cast_into()?.unbind())
        })?;
        Ok(windows.bind(py))
    }
}

impl Content for SeriesRows {
    fn core(&self) -> &(dyn HtmlFrame + Send + Sync) {
        &self.series
    }
}

impl Rows for SeriesRows {
    fn length(&self) -> usize {
        self.series.len()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(row) = self.series.row(index) else {
            return Ok(None);
        };
        let window = self
            .windows(py)?
            .get_item(self.series.window_ids()[index] as usize)?;
        let names = PyTuple::new(py, self.series.dimensions().names())?;
        let values = PyTuple::new(py, row.values())?;
        let [success, errors, filtered] = row.counts().each();
        let fields = (window, names, values, success, errors, filtered);
        object(py, "SeriesRow", fields).map(Some)
    }
}
