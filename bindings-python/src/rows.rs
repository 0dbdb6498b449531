//! What tables, series and comparisons are to Python: sequences of rows.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::PyClass;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyList, PySlice};

use crate::convert::Given;

/// About how many bytes a row has: an id and three counts.
pub(crate) const ROW: usize = 32;

/// Something with rows.
pub(crate) trait Rows {
    /// How many rows.
    fn rows(&self) -> usize;

    /// The row at a position, if there is one.
    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>>;
}

/// What `rows[key]` is: a row by its index, which counts from the end if it is negative, or a list
/// of those of a slice.
pub(crate) fn item<'py>(rows: &impl Rows, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = key.py();
    if let Ok(slice) = key.cast::<PySlice>() {
        return Ok(several(rows, slice)?.into_any());
    }
    let row = match key.extract()? {
        Given::Fits(index) => at(rows, py, index)?,
        Given::Unfit(..) => None,
    };
    row.ok_or_else(|| PyIndexError::new_err("there is no such row"))
}

/// The rows at some positions.
pub(crate) fn picked<'py>(
    rows: &impl Rows,
    py: Python<'py>,
    positions: impl IntoIterator<Item = usize>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    positions
        .into_iter()
        .filter_map(|position| rows.row(py, position).transpose())
        .collect()
}

fn at<'py>(rows: &impl Rows, py: Python<'py>, index: isize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let from_start = if index < 0 {
        index.wrapping_add_unsigned(rows.rows())
    } else {
        index
    };
    usize::try_from(from_start).map_or(Ok(None), |index| rows.row(py, index))
}

fn several<'py>(rows: &impl Rows, slice: &Bound<'py, PySlice>) -> PyResult<Bound<'py, PyList>> {
    let indices = slice.indices(isize::try_from(rows.rows())?)?;
    let list = PyList::empty(slice.py());
    let mut index = indices.start;
    for _ in 0..indices.slicelength {
        list.append(at(rows, slice.py(), index)?)?;
        index = index.saturating_add(indices.step);
    }
    Ok(list)
}

/// Gives rows one after the other.
#[pyclass(frozen, module = "tallyfold._tallyfold")]
pub(crate) struct RowIterator {
    source: Box<dyn Source>,
    order: Order,
    position: AtomicUsize,
}

/// Which row comes at a position of so many.
type Order = fn(usize, usize) -> Option<usize>;

/// A Python object with rows.
trait Source: Rows + Send + Sync {}

impl<T: Rows + Send + Sync> Source for T {}

impl<T: Rows + PyClass<Frozen = True> + Sync> Rows for Py<T> {
    fn rows(&self) -> usize {
        self.get().rows()
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get().row(py, index)
    }
}

impl RowIterator {
    /// From the first row to the last.
    pub(crate) fn forward<T>(source: &Bound<'_, T>) -> Self
    where
        T: Rows + PyClass<Frozen = True> + Sync,
    {
        Self::new(source, |_, position| Some(position))
    }

    /// From the last row to the first.
    pub(crate) fn backward<T>(source: &Bound<'_, T>) -> Self
    where
        T: Rows + PyClass<Frozen = True> + Sync,
    {
        Self::new(source, |rows, position| rows.checked_sub(position + 1))
    }

    fn new<T>(source: &Bound<'_, T>, order: Order) -> Self
    where
        T: Rows + PyClass<Frozen = True> + Sync,
    {
        Self {
            source: Box::new(source.clone().unbind()),
            order,
            position: AtomicUsize::new(0),
        }
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let position = self.position.fetch_add(1, Ordering::Relaxed);
        match (self.order)(self.source.rows(), position) {
            Some(index) => self.source.row(py, index),
            None => Ok(None),
        }
    }
}
