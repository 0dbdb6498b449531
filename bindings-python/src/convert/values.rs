//! The small values of the facade, made of the core's.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use tallyfold::{
    Additivity, Attempt, Code, Comparison, CountTable, Counts, Deltas, Dimensions, Notes, Rates,
    Reconciliation,
};
use tallyfold::{Revision, Series, SeriesWindow, Shares, Timestamp, Window};

use super::{Given, fitting};
use crate::error::Result;
use crate::{comparison, table};

/// The names in order, as a tuple.
pub(crate) fn names<'py>(
    py: Python<'py>,
    dimensions: &Dimensions,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, dimensions.names())
}

/// `tallyfold.Counts`.
pub(crate) fn counts(py: Python<'_>, counts: Counts) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Counts {
        success,
        errors,
        filtered,
    } = counts;
    class(py, &CLASS, "Counts")?.call1((success, errors, filtered))
}

/// `tallyfold.Rates` of these counts, which only the core divides.
#[pyfunction]
pub(crate) fn count_rates(
    py: Python<'_>,
    success: Given<u64>,
    errors: Given<u64>,
    filtered: Given<u64>,
) -> Result<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let counts = Counts {
        success: fitting("success", success)?,
        errors: fitting("errors", errors)?,
        filtered: fitting("filtered", filtered)?,
    };
    let Rates {
        delivery,
        error,
        filter,
    } = counts.rates();
    Ok(class(py, &CLASS, "Rates")?.call1((delivery, error, filter))?)
}

/// `tallyfold.Deltas`.
pub(crate) fn deltas(py: Python<'_>, deltas: Deltas) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Deltas {
        success,
        errors,
        filtered,
    } = deltas;
    class(py, &CLASS, "Deltas")?.call1((success, errors, filtered))
}

fn shares(py: Python<'_>, shares: Shares) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Shares {
        success,
        errors,
        filtered,
    } = shares;
    class(py, &CLASS, "Shares")?.call1((success, errors, filtered))
}

/// `tallyfold.Row`, of the table's row at `index`, if it exists.
pub(crate) fn row<'py>(
    py: Python<'py>,
    table: &CountTable,
    index: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Some(row) = table.row(index) else {
        return Ok(None);
    };
    let dimensions = table.dimensions();
    let values = PyTuple::new(py, row.values())?;
    let Counts {
        success,
        errors,
        filtered,
    } = row.counts();
    let fields = (names(py, dimensions)?, values, success, errors, filtered);
    class(py, &CLASS, "Row")?.call1(fields).map(Some)
}

/// `tallyfold.SeriesRow`, of the series' row at `index`, if it exists; `windows` are those of
/// `series_windows`.
pub(crate) fn series_row<'py>(
    py: Python<'py>,
    series: &Series,
    windows: &Bound<'py, PyTuple>,
    index: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Some(row) = series.row(index) else {
        return Ok(None);
    };
    let window = windows.get_item(series.window_ids()[index] as usize)?;
    let names = names(py, series.dimensions())?;
    let values = PyTuple::new(py, row.values())?;
    let Counts {
        success,
        errors,
        filtered,
    } = row.counts();
    let fields = (window, names, values, success, errors, filtered);
    class(py, &CLASS, "SeriesRow")?.call1(fields).map(Some)
}

/// `tallyfold.ComparisonRow`, of the comparison's row at `index`, if it exists.
pub(crate) fn comparison_row<'py>(
    py: Python<'py>,
    comparison: &Comparison,
    index: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Some(row) = comparison.row(index) else {
        return Ok(None);
    };
    let side = |side: Option<Counts>| side.map(|side| counts(py, side)).transpose();
    let fields = (
        names(py, comparison.dimensions())?,
        PyTuple::new(py, row.values())?,
        row.presence().as_str(),
        side(row.before())?,
        side(row.after())?,
        deltas(py, row.delta())?,
        shares(py, row.share())?,
    );
    class(py, &CLASS, "ComparisonRow")?.call1(fields).map(Some)
}

/// A list of `tallyfold.Window`.
pub(crate) fn windows<'py>(
    py: Python<'py>,
    windows: &[Window],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    windows.iter().map(|of| window(py, *of)).collect()
}

/// `tallyfold.Window`.
pub(crate) fn window(py: Python<'_>, window: Window) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    class(py, &CLASS, "Window")?.call1((text(window.start()), text(window.end())))
}

/// `tallyfold.Attempt`, which has its wait in seconds.
pub(crate) fn attempt(py: Python<'_>, attempt: Attempt) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let fields = (
        attempt.target.as_str(),
        attempt.window.map(|of| window(py, of)).transpose()?,
        attempt.number,
        attempt.status,
        attempt.code.map(Code::as_str),
        attempt.wait_ms.map(|ms| ms as f64 / 1000.0),
    );
    class(py, &CLASS, "Attempt")?.call1(fields)
}

/// `tallyfold.Revision`.
pub(crate) fn revision(py: Python<'_>, revision: Revision) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Revision {
        window: of,
        table,
        changes,
        settled,
    } = revision;
    let (table, changes) = (
        table::CountTable(table),
        comparison::Comparison::of(changes),
    );
    CLASS.import(py, "tallyfold._ranges", "Revision")?.call1((
        window(py, of)?,
        table,
        changes,
        settled,
    ))
}

/// `tallyfold.Additivity`.
pub(crate) fn additivity(py: Python<'_>, found: Additivity) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Additivity {
        verdict,
        whole,
        difference,
    } = found;
    let (whole, difference) = (
        table::CountTable(whole),
        comparison::Comparison::of(difference),
    );
    CLASS.import(py, "tallyfold._ranges", "Additivity")?.call1((
        verdict.as_str(),
        whole,
        difference,
    ))
}

/// A tuple of `tallyfold.SeriesWindow`.
pub(crate) fn series_windows<'py>(
    py: Python<'py>,
    windows: &[SeriesWindow],
) -> PyResult<Bound<'py, PyTuple>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = class(py, &CLASS, "SeriesWindow")?;
    let make = |of: &SeriesWindow| {
        let SeriesWindow { window, complete } = *of;
        class.call1((text(window.start()), text(window.end()), complete))
    };
    let windows: Vec<_> = windows.iter().map(make).collect::<PyResult<_>>()?;
    PyTuple::new(py, windows)
}

fn text(timestamp: Timestamp) -> String {
    timestamp.to_string()
}

/// `tallyfold.Reconciliation`.
pub(crate) fn reconciliation(
    py: Python<'_>,
    reconciliation: Reconciliation,
) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = class(py, &CLASS, "Reconciliation")?;
    match reconciliation {
        Reconciliation::Balanced => class.call1(("balanced", 0, 0, 0)),
        Reconciliation::Unavailable => class.call1(("unavailable",)),
        Reconciliation::Unbalanced {
            success,
            errors,
            filtered,
        } => class.call1(("unbalanced", success, errors, filtered)),
    }
}

/// `tallyfold.Notes`.
pub(crate) fn notes(py: Python<'_>, notes: Notes) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Notes {
        repeated_combinations,
        null_dimensions,
    } = notes;
    class(py, &CLASS, "Notes")?.call1((repeated_combinations, null_dimensions))
}

/// A class of the facade's small values, looked up once.
fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, "tallyfold._values", name)
}
