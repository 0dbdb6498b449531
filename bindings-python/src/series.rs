//! `Series`: exact counts by window and dimension values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use tallyfold::{Frame as _, HtmlFrame};

use crate::detach::detached;
use crate::error::Result;
use crate::frame::{self, Frame, Reduced};
use crate::plain::{object, plain};
use crate::rows::{Content, Rows};

/// A table's counts in chronological order: one row for each window and combination of dimension
/// values. `CountTable.by_window` returns it.
///
/// A series is immutable. Its rows are sorted by window, then by their dimension values, in the
/// order of `dimensions`. Counts are numbers of events, as `int` from 0 to 2**64 - 1, never `float`
/// (service reference 2.2 and 2.3).
///
/// polars, pandas, duckdb and pyarrow read a series through `__arrow_c_stream__`: `window_start`
/// and `window_end` as timestamps in UTC, rounded down to the microsecond as `Window.start` is, `complete`
/// and `settled` as booleans, then the columns of a table. `settled` is true if the counts of the window are complete
/// and no longer change.
///
/// >>> series = table.group_by("integration").by_window("15m")
/// >>> for row in series:
/// ...     print(row.window.start_text, row.dimensions["integration"], row.rates.delivery)
/// 2026-01-01T00:00:00Z email None
/// 2026-01-01T00:00:00Z warehouse 0.875
/// >>> import polars
/// >>> polars.DataFrame(series).columns
/// ['window_start', 'window_end', 'complete', 'settled', 'integration', 'success', 'errors', 'filtered']
#[pyclass(frozen, eq, extends = Frame, module = "tallyfold")]
pub(crate) struct Series(Arc<SeriesRows>);

impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        self.0.series == other.0.series
    }
}

/// The core's series, and what its rows share.
struct SeriesRows {
    series: Arc<tallyfold::Series>,
    origin: Origin,
    windows: PyOnceLock<Py<PyList>>,
}

/// The method of a table or of another series that made a series, and the method's arguments. A pickle contains them.
struct Origin {
    of: Py<PyAny>,
    method: &'static str,
    arguments: Py<PyTuple>,
}

#[pymethods]
impl Series {
    /// The step in its largest unit, such as `"15m"`, `"90m"` and `"1h"`; `None` if each response keeps
    /// its own window.
    #[getter]
    fn step(&self) -> Option<String> {
        self.0.series.step().map(|step| step.to_string())
    }

    /// The name of the time zone, if the windows are days of a zone; otherwise `None`.
    ///
    /// >>> table.by_window("1d", zone="Asia/Kolkata").zone
    /// 'Asia/Kolkata'
    #[getter]
    fn zone(&self) -> Option<&str> {
        self.0.series.zone()
    }

    /// The windows as `SeriesWindow` objects, sorted, including windows without rows. Windows that
    /// the table doesn't cover at all are left out.
    #[getter]
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.windows(py)?.call_method0("copy")
    }

    /// The sum of all rows, as `Counts`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.0.series.totals())
    }

    /// Whether the table covers all windows completely. If not, `complete` of each window and row shows which.
    ///
    /// >>> table.by_window("15m").complete, table.by_window("1h").complete
    /// (True, False)
    #[getter]
    fn complete(&self) -> bool {
        self.0.series.complete()
    }

    /// The series with a row for each window and each combination that occurs in any window. Added rows have counts
    /// of 0. A series without dimensions gets a row for each window.
    ///
    /// Windows that the table does not cover are not added, because their counts are unknown.
    ///
    /// Raises:
    ///     ResponseError: `group_limit` for more than 2**25 rows.
    ///
    /// >>> later = client.event_delivery(
    /// ...     "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", ["integration", "reason"]
    /// ... )
    /// >>> series = table.merge(later).by_window("15m")
    /// >>> len(series), len(series.fill_zeros())
    /// (2, 4)
    fn fill_zeros<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        let (py, own) = (slf.py(), &slf.get().0);
        let bytes = own.bytes().saturating_mul(own.series.windows().len());
        let series = detached(py, bytes, || own.series.fill_zeros())?;
        let origin = Origin::new(slf.as_any(), "fill_zeros", PyTuple::empty(py));
        Ok(Self::of(py, series, origin)?)
    }

    /// The same series for the responses that lie in `[start, end)`. A step that lies only partly in the range is
    /// not `complete`.
    ///
    /// Raises:
    ///     ConfigError: as for `CountTable.between`.
    ///
    /// >>> series = table.by_window("1h")
    /// >>> series.between("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z") == series
    /// True
    fn between<'py>(
        slf: &Bound<'py, Self>,
        start: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        let Origin { of, method, arguments } = &slf.get().0.origin;
        let py = slf.py();
        let slice = of.bind(py).call_method1("between", (start, end))?;
        let series = slice.call_method1(*method, arguments.bind(py).clone())?;
        Ok(series.cast_into().map_err(PyErr::from)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let series = &self.0.series;
        let zone = series.zone().map(|zone| format!(" of {zone}"));
        let step = series.step().map(|step| format!(" of {step}{}", zone.unwrap_or_default()));
        let windows = series.windows().len();
        let middle = format!("{windows} windows{}, ", step.unwrap_or_default());
        frame::repr(py, "Series", &**series, &middle, series.totals().each())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py, Bound<'py, PyTuple>>> {
        let Origin { of, method, arguments } = &self.0.origin;
        Ok((of.bind(py).getattr(*method)?, arguments.bind(py).clone()))
    }
}

impl Origin {
    fn new(of: &Bound<'_, PyAny>, method: &'static str, arguments: Bound<'_, PyTuple>) -> Self {
        Self { of: of.clone().unbind(), method, arguments: arguments.unbind() }
    }
}

impl Series {
    /// Makes the Python object of a core series, which a table's `by_window` has made.
    pub(crate) fn made<'py>(
        table: &Bound<'py, PyAny>,
        series: tallyfold::Series,
    ) -> PyResult<Bound<'py, Self>> {
        let py = table.py();
        let step = series.step().map(|step| step.to_string());
        let arguments = (step, series.zone()).into_pyobject(py)?;
        Self::of(py, series, Origin::new(table, "by_window", arguments))
    }

    fn of(py: Python<'_>, series: tallyfold::Series, origin: Origin) -> PyResult<Bound<'_, Self>> {
        let windows = PyOnceLock::new();
        let own = Arc::new(SeriesRows { series: Arc::new(series), origin, windows });
        Frame::made(py, Self(Arc::clone(&own)), own)
    }
}

impl Series {
    /// The core's series.
    pub(crate) fn shared(&self) -> Arc<tallyfold::Series> {
        Arc::clone(&self.0.series)
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
        &*self.series
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
        let window = self.windows(py)?.get_item(self.series.window_ids()[index] as usize)?;
        let names = PyTuple::new(py, self.series.dimensions().names())?;
        let values = PyTuple::new(py, row.values())?;
        let [success, errors, filtered] = row.counts().each();
        let fields = (window, names, values, success, errors, filtered);
        object(py, "SeriesRow", fields).map(Some)
    }
}
