//! The one place where a core error becomes a Python exception.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tallyfold::{Code, Error, Kind};

/// What the methods of this crate return.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// An error of the core, or of Python itself.
pub(crate) enum Failure {
    Core(Error),
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Core(error) => Python::attach(|py| exception(py, &error)),
        }
    }
}

/// Every error code of the core with its kind, in the order of the documentation.
#[pyfunction]
pub(crate) fn error_codes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Code::ALL
        .iter()
        .map(|code| (code.as_str(), code.kind().as_str()))
        .into_py_dict(py)
}

/// The exception of the error's kind, whose class is written in Python.
fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        Kind::Config => "ConfigError",
        Kind::Auth => "AuthError",
        Kind::Service => "ServiceError",
        Kind::Response => "ResponseError",
    };
    let build = || {
        let context = PyDict::new(py);
        context.set_item("code", error.code().as_str())?;
        context.set_item("status", error.status())?;
        context.set_item("path", error.path())?;
        context.set_item("offset", error.offset())?;
        context.set_item("argument", error.argument_name())?;
        let class = py.import("tallyfold._errors")?.getattr(class)?;
        class.call((error.to_string(),), Some(&context))
    };
    build().map_or_else(|failure| failure, PyErr::from_value)
}
