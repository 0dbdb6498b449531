//! The one place where a core error becomes a Python exception.

use arrow_schema::ArrowError;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tallyfold::{Code, CollectError, Error, Kind};

use crate::convert;
use crate::table::CountTable;

/// What the methods of this crate return.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// An error of the core, or of Python itself.
pub(crate) enum Failure {
    Core(Error),
    /// A collect with windows missing.
    Collect(Box<CollectError>),
    Python(PyErr),
    /// An argument that can't be handed to the core.
    Unfit {
        code: Code,
        argument: String,
        reason: &'static str,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<CollectError> for Failure {
    fn from(ended: CollectError) -> Self {
        Self::Collect(Box::new(ended))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// What Arrow can't hold, such as an array of too many bytes.
impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::Python(PyOverflowError::new_err(error.to_string()))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Core(error) => Python::attach(|py| exception(py, &error)),
            Failure::Collect(ended) => Python::attach(|py| incomplete(py, *ended)),
            Failure::Unfit {
                code,
                argument,
                reason,
            } => Python::attach(|py| unfit(py, code, &argument, reason)),
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
    let build = || {
        raised(
            py,
            error.code(),
            &error.to_string(),
            &context_of(py, error)?,
        )
    };
    build().unwrap_or_else(|failure| failure)
}

/// The exception of a collect's error, with what was read and what is missing.
fn incomplete(py: Python<'_>, ended: CollectError) -> PyErr {
    let message = ended.to_string();
    let CollectError {
        error,
        partial,
        gaps,
        failures,
    } = ended;
    let build = || {
        let context = context_of(py, &error)?;
        context.set_item("partial", partial.map(CountTable))?;
        context.set_item("gaps", convert::windows(py, &gaps)?)?;
        let failures = failures.iter().map(|(window, error)| {
            let error = exception(py, error).into_value(py);
            Ok((convert::window(py, *window)?, error))
        });
        context.set_item("failures", failures.collect::<PyResult<Vec<_>>>()?)?;
        raised(py, error.code(), &message, &context)
    };
    build().unwrap_or_else(|failure| failure)
}

fn context_of<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let context = PyDict::new(py);
    context.set_item("status", error.status())?;
    context.set_item("path", error.path())?;
    context.set_item("offset", error.offset())?;
    context.set_item("retry_after", error.retry_after_s())?;
    context.set_item("argument", error.argument_name())?;
    Ok(context)
}

fn unfit(py: Python<'_>, code: Code, argument: &str, reason: &str) -> PyErr {
    let message = format!("{code}: {argument}: {reason}");
    let build = || {
        let context = PyDict::new(py);
        context.set_item("argument", argument)?;
        raised(py, code, &message, &context)
    };
    build().unwrap_or_else(|failure| failure)
}

fn raised(
    py: Python<'_>,
    code: Code,
    message: &str,
    context: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = match code.kind() {
        Kind::Config => "ConfigError",
        Kind::Auth => "AuthError",
        Kind::Service => "ServiceError",
        Kind::Response => "ResponseError",
    };
    context.set_item("code", code.as_str())?;
    let class = py.import("tallyfold._errors")?.getattr(class)?;
    class.call((message,), Some(context)).map(PyErr::from_value)
}
