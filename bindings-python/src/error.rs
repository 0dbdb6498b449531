//! The one place where an error becomes a Python exception.

use std::borrow::Cow;

use arrow_schema::ArrowError;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde::Serialize;
use tallyfold::{Code, Error, Kind, Name, Spelling};

use crate::plain;

/// What the functions of this crate return.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// An exception to raise.
#[derive(Debug)]
pub(crate) struct Failure(PyErr);

impl Failure {
    /// An argument with a value that can't be used. The message never quotes the value.
    pub(crate) fn refused(argument: &str, code: Code, message: &'static str) -> Self {
        Error::argument(Name::of_caller(argument), code, message).into()
    }

    /// An argument with a value of the wrong type.
    pub(crate) fn wrong_type(argument: &str, wanted: &str, value: &Bound<'_, PyAny>) -> Self {
        let message = format!("{wanted}, not {}", class_name(value));
        Self::of_type(argument, message, value.py())
    }

    /// An argument that contains something of the wrong type.
    pub(crate) fn wrong_item(argument: &str, wanted: &str, item: &Bound<'_, PyAny>) -> Self {
        let message = format!("{wanted}, but this contains {}", class_name(item));
        Self::of_type(argument, message, item.py())
    }

    fn of_type(argument: &str, message: String, py: Python<'_>) -> Self {
        let error = Error::argument(Name::of_caller(argument), Code::InvalidArgument, message);
        Self::of(py, &error, "ArgumentTypeError", None)
    }

    /// The same exception, raised from another.
    pub(crate) fn because(self, py: Python<'_>, cause: PyErr) -> Self {
        self.0.set_cause(py, Some(cause));
        self
    }

    /// The exception of an error, with another message and with attributes in addition to the error's own.
    pub(crate) fn with(
        py: Python<'_>,
        error: &Error,
        message: String,
        more: &Bound<'_, PyDict>,
    ) -> Self {
        Self::of(py, error, class_of(error), Some((message, more)))
    }

    fn of(
        py: Python<'_>,
        error: &Error,
        class: &str,
        more: Option<(String, &Bound<'_, PyDict>)>,
    ) -> Self {
        let make = || {
            let fields = plain::dict(py, &Fields::from(error))?.cast_into::<PyDict>()?;
            let message = match more {
                Some((message, more)) => {
                    fields.update(more.as_mapping())?;
                    message
                }
                None => error.text_in(Spelling::Python).to_string(),
            };
            let class = py.import("tallyfold._errors")?.getattr(class)?;
            class.call((message,), Some(&fields))
        };
        Self(make().map_or_else(|failed| failed, PyErr::from_value))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Python::attach(|py| Self::of(py, &error, class_of(&error), None))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

/// Converts an Arrow error, such as for an array of too many bytes, to an `OverflowError`.
impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self(PyOverflowError::new_err(error.to_string()))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

/// The name of the exception's class, which is written in Python.
fn class_of(error: &Error) -> &'static str {
    match (error.code(), error.kind()) {
        (Code::UnknownArgument | Code::MissingArgument, _) => "ArgumentTypeError",
        (_, Kind::Config) => "ConfigError",
        (_, Kind::Auth) => "AuthError",
        (_, Kind::Service) => "ServiceError",
        (_, Kind::Response) => "ResponseError",
    }
}

/// The attributes of an exception.
#[derive(Serialize)]
struct Fields<'a> {
    code: Code,
    status: Option<u16>,
    path: Option<&'a str>,
    offset: Option<u64>,
    retry_after: Option<u64>,
    excerpt: Option<&'a str>,
    argument: Option<Cow<'a, str>>,
}

impl<'a> From<&'a Error> for Fields<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            code: error.code(),
            status: error.status(),
            path: error.path(),
            offset: error.offset(),
            retry_after: error.retry_after_s(),
            excerpt: error.excerpt(),
            argument: error.argument_in(Spelling::Python),
        }
    }
}

/// Every error code of the core with its kind, in the order of the documentation.
#[pyfunction]
pub(crate) fn error_codes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Code::ALL.iter().map(|code| (code.as_str(), code.kind().as_str())).into_py_dict(py)
}

fn class_name(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map(|name| name.to_string()).unwrap_or_default()
}
