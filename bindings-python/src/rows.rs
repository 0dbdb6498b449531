//! Sequences of rows, such as those of tables, series and comparisons.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyRange, PySlice};
use tallyfold::HtmlFrame;

/// A sequence of rows.
pub(crate) trait Rows: Send + Sync + 'static {
    /// The number of rows.
    fn length(&self) -> usize;

    /// The row at a position, if there is one.
    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>>;
}

/// The approximate size of a row in bytes: an id and three counts.
pub(crate) const ROW: usize = 32;

/// The content of a frame: the rows of a core frame.
pub(crate) trait Content: Rows {
    /// The core's frame.
    fn core(&self) -> &(dyn HtmlFrame + Send + Sync);

    /// The approximate size of all rows in bytes.
    fn bytes(&self) -> usize {
        self.core().len().saturating_mul(ROW)
    }
}

/// The rows at some positions.
pub(crate) fn picked<'py>(
    rows: &dyn Rows,
    py: Python<'py>,
    positions: impl IntoIterator<Item = usize>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    positions.into_iter().filter_map(|position| rows.row(py, position).transpose()).collect()
}

/// Returns `rows[key]`: for an index, which counts from the end if it is negative, a row; for a slice,
/// a list of rows. Python's own `range` computes the positions.
pub(crate) fn item<'py>(rows: &dyn Rows, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = key.py();
    if let Ok(index) = key.extract()
        && let Some(row) = rows.row(py, index)?
    {
        return Ok(row);
    }
    let positions = all(py, rows.length())?.get_item(key)?;
    if key.is_instance_of::<PySlice>() {
        let positions: Vec<usize> = positions.extract()?;
        return picked(rows, py, positions)?.into_bound_py_any(py);
    }
    rows.row(py, positions.extract()?)?.into_bound_py_any(py)
}

/// An iterator over all rows.
pub(crate) fn forward<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    each(rows, all(rows.py(), rows.len()?)?)
}

/// An iterator over all rows from the last one to the first.
pub(crate) fn backward<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let positions = all(rows.py(), rows.len()?)?;
    each(rows, positions.call_method0("__reversed__")?)
}

fn all(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyRange::new(py, 0, isize::try_from(length)?)?.into_any())
}

fn each<'py>(
    rows: &Bound<'py, PyAny>,
    positions: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let map = rows.py().import("builtins")?.getattr("map")?;
    map.call1((rows.getattr("__getitem__")?, positions))
}
