//! Conversions between Python's values and the core's.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDateTime, PyString, PyTuple, PyType, PyTzInfo};
use tallyfold::{CountTable, Counts, Dimensions, Notes, Now, Reconciliation, Timestamp, Window};

use crate::error::{Failure, Result};

/// Runs `action` on what the mutex guards, with the interpreter free for other threads.
///
/// The lock is taken and released while detached: a thread that waits for it then never keeps
/// the one that holds it from finishing.
pub(crate) fn locked<T: Send, R: Send>(
    py: Python<'_>,
    mutex: &Mutex<T>,
    action: impl FnOnce(&mut T) -> R + Send,
) -> R {
    // What the mutex guards repeats its first error by itself, so a panic elsewhere spoils nothing.
    py.detach(|| action(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// A pair `(monotonic_ms, unix_ms)`.
pub(crate) struct Clocks(pub(crate) Now);

impl<'py> FromPyObject<'_, 'py> for Clocks {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (monotonic_ms, unix_ms) = value.extract()?;
        Ok(Self(Now {
            monotonic_ms,
            unix_ms,
        }))
    }
}

/// A timestamp's text, from a `str` as it is or from a `datetime`.
///
/// An aware `datetime` becomes UTC with a `Z`. A naive one names no instant and gets no `Z`, which
/// the core refuses with its own words.
pub(crate) struct Instant(String);

impl<'py> FromPyObject<'_, 'py> for Instant {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(moment) = value.cast::<PyDateTime>() else {
            return value.extract().map(Self);
        };
        if moment.call_method0("utcoffset")?.is_none() {
            return moment.call_method0("isoformat")?.extract().map(Self);
        }
        let utc = moment.call_method1("astimezone", (PyTzInfo::utc(value.py())?,))?;
        let text: String = utc.call_method0("isoformat")?.extract()?;
        Ok(Self(text.replace("+00:00", "Z")))
    }
}

impl Deref for Instant {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// An `int` that has to fit into a number of the core.
pub(crate) enum Whole<T> {
    Fits(T),
    Outside,
}

impl<'py, T> FromPyObject<'_, 'py> for Whole<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(number) => Ok(Self::Fits(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(Self::Outside),
            Err(error) => Err(error),
        }
    }
}

/// The number of an argument.
pub(crate) fn fitting<T>(argument: &'static str, number: Whole<T>) -> Result<T> {
    match number {
        Whole::Fits(number) => Ok(number),
        Whole::Outside => Err(Failure::OutOfRange(argument)),
    }
}

/// The number of an argument, if it was given.
pub(crate) fn fitting_if<T>(argument: &'static str, number: Option<Whole<T>>) -> Result<Option<T>> {
    number.map(|number| fitting(argument, number)).transpose()
}

/// One `str`, or any iterable of them.
pub(crate) struct Texts(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(vec![text.extract()?]));
        }
        value
            .try_iter()?
            .map(|item| item?.extract())
            .collect::<PyResult<_>>()
            .map(Self)
    }
}

/// The bytes of any bytes-like object, which no other thread can change: borrowed from `bytes`,
/// copied from everything else.
pub(crate) enum Chunk {
    Shared(PyBackedBytes),
    Copied(Vec<u8>),
}

impl<'py> FromPyObject<'_, 'py> for Chunk {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.extract() {
            return Ok(Self::Shared(bytes));
        }
        PyBuffer::get(&value)?.to_vec(value.py()).map(Self::Copied)
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A document as `str` or as bytes.
#[derive(FromPyObject)]
pub(crate) enum Document {
    Text(PyBackedStr),
    Bytes(Chunk),
}

impl Deref for Document {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

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

/// `tallyfold.Row`, of the table's row at `index`, which must exist.
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

/// A list of `tallyfold.Window`.
pub(crate) fn windows(py: Python<'_>, windows: Vec<Window>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = class(py, &CLASS, "Window")?;
    let text = |timestamp: Timestamp| timestamp.to_string();
    windows
        .into_iter()
        .map(|w| class.call1((text(w.start()), text(w.end()))))
        .collect()
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
