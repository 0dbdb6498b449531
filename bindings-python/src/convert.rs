//! Conversions between Python's values and the core's: arguments here, what is given back in `values`.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError, TryLockError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyString, PyTzInfo};
use tallyfold::{Code, Now, Secret, TimeStep};

use crate::error::{Failure, Result};

mod values;

pub(crate) use values::*;

/// Bytes that are worked on in less time, a tenth of a millisecond, than another thread may take to
/// give the interpreter back: 5 ms if it is busy. Python's HTTP stacks read no more at once.
const FEW_BYTES: usize = 64 * 1024;

/// What to say of work that does not grow with anything.
pub(crate) const BRIEF: usize = 0;

/// Runs `action`, with the interpreter free for other threads unless there are but few bytes to
/// work on.
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    bytes: usize,
    action: impl FnOnce() -> R + Send,
) -> R {
    if bytes <= FEW_BYTES {
        action()
    } else {
        py.detach(action)
    }
}

/// Runs `action` on what the mutex guards, as `detached` does.
///
/// The lock is never waited for while attached, and is released before attaching again: a thread
/// that waits for it then never keeps the one that holds it from finishing.
pub(crate) fn locked<T: Send, R: Send>(
    py: Python<'_>,
    mutex: &Mutex<T>,
    bytes: usize,
    action: impl FnOnce(&mut T) -> R + Send,
) -> R {
    // What the mutex guards repeats its first error by itself, so a panic elsewhere spoils nothing.
    let free = || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    if bytes <= FEW_BYTES
        && let Some(mut guard) = free()
    {
        return action(&mut guard);
    }
    py.detach(|| action(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Something that nobody else can know, and no other process has.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(())
}

/// What `__reduce__` gives: what makes such an object again, and its arguments.
pub(crate) type Reduced<'py, T> = (Bound<'py, PyAny>, T);

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

/// An argument of the right type, which may still be nothing that the core can hold.
pub(crate) enum Given<T> {
    Fits(T),
    /// What is wrong with it, in words that quote nothing of it.
    Unfit(Code, &'static str),
}

impl<'py, T> FromPyObject<'_, 'py> for Given<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let unfit = |reason| Ok(Self::Unfit(Code::InvalidArgument, reason));
        match value.extract() {
            Ok(value) => Ok(Self::Fits(value)),
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
                unfit("the number is negative or too large")
            }
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => {
                unfit("the text has a lone surrogate")
            }
            Err(error) => Err(error),
        }
    }
}

/// What was given for an argument.
pub(crate) fn fitting<T>(argument: &str, given: Given<T>) -> Result<T> {
    match given {
        Given::Fits(value) => Ok(value),
        Given::Unfit(code, reason) => Err(Failure::Unfit {
            code,
            argument: argument.to_owned(),
            reason,
        }),
    }
}

/// What was given for an argument, if anything was.
pub(crate) fn fitting_if<T>(argument: &str, given: Option<Given<T>>) -> Result<Option<T>> {
    given.map(|given| fitting(argument, given)).transpose()
}

/// A time in seconds, as milliseconds.
pub(crate) struct Milliseconds(Given<u64>);

impl Milliseconds {
    fn of(self, argument: &str) -> Result<u64> {
        fitting(argument, self.0)
    }
}

/// The time of an argument, if one was given.
pub(crate) fn milliseconds_if(argument: &str, given: Option<Milliseconds>) -> Result<Option<u64>> {
    given.map(|given| given.of(argument)).transpose()
}

impl FromPyObject<'_, '_> for Milliseconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match value.extract() {
            Ok(seconds) => seconds,
            // An int that no float can hold.
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => f64::INFINITY,
            Err(error) => return Err(error),
        };
        let reason = "want a number of seconds, 0 or more";
        let unfit = Given::Unfit(Code::InvalidArgument, reason);
        // Of a number that is too large, the core says so.
        let fits = seconds >= 0.0;
        Ok(Self(if fits {
            Given::Fits((seconds * 1000.0).round() as u64)
        } else {
            unfit
        }))
    }
}

/// The text of a secret. Python's own error for what is no text would quote it, so none is kept.
pub(crate) struct SecretText(Option<Secret>);

impl<'py> FromPyObject<'_, 'py> for SecretText {
    type Error = Infallible;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> std::result::Result<Self, Infallible> {
        Ok(Self(value.extract().ok().map(String::into)))
    }
}

impl SecretText {
    /// The secret of an argument.
    pub(crate) fn of(self, argument: &str) -> Result<Secret> {
        let unfit = Given::Unfit(Code::InvalidArgument, "want a str of Unicode text");
        fitting(argument, self.0.map_or(unfit, Given::Fits))
    }

    /// The token; what is no text becomes the empty one, which the core refuses in its own words.
    pub(crate) fn token(self) -> Secret {
        self.0.unwrap_or_else(|| Secret::from(String::new()))
    }
}

/// A timestamp's text, from a `str` as it is or from a `datetime`.
///
/// An aware `datetime` becomes UTC with a `Z`. A naive one names no instant and gets no `Z`, which
/// the core refuses with its own words.
pub(crate) struct Instant(Given<String>);

impl Instant {
    /// The text of an argument.
    pub(crate) fn of(self, argument: &str) -> Result<String> {
        fitting(argument, self.0)
    }
}

impl<'py> FromPyObject<'_, 'py> for Instant {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let unfit = |reason| Ok(Self(Given::Unfit(Code::InvalidTimestamp, reason)));
        if let Ok(text) = value.cast::<PyString>() {
            return match text.extract() {
                Ok(text) => Ok(Self(Given::Fits(text))),
                Err(_) => unfit("the text has a lone surrogate"),
            };
        }
        if let Ok(moment) = value.cast::<PyDateTime>() {
            return match in_utc(&moment) {
                Ok(text) => Ok(Self(Given::Fits(text))),
                // Such as pandas' NaT, and the last hours of the year 9999 west of Greenwich.
                Err(_) => unfit("the datetime is no instant of the years 1 to 9999 in UTC"),
            };
        }
        if value.is_instance_of::<PyDate>() {
            return unfit("a date names no instant: want a datetime with a time zone");
        }
        let class = value.get_type().name()?;
        let message = format!("want a datetime or a str, not {class}");
        Err(PyTypeError::new_err(message))
    }
}

fn in_utc(moment: &Bound<'_, PyDateTime>) -> PyResult<String> {
    if moment.call_method0("utcoffset")?.is_none() {
        return moment.call_method0("isoformat")?.extract();
    }
    let utc = moment.call_method1("astimezone", (PyTzInfo::utc(moment.py())?,))?;
    let text: String = utc.call_method0("isoformat")?.extract()?;
    Ok(text.replace("+00:00", "Z"))
}

/// A step of the UTC day, from a `str` as it is or from a `timedelta`.
pub(crate) enum Step {
    Text(Given<String>),
    Seconds(Given<u64>),
}

impl Step {
    /// The step of an argument.
    pub(crate) fn of(self, argument: &str) -> Result<TimeStep> {
        Ok(match self {
            Self::Text(text) => TimeStep::parse(&fitting(argument, text)?)?,
            Self::Seconds(seconds) => TimeStep::from_seconds(fitting(argument, seconds)?)?,
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for Step {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            return value.extract().map(Self::Text);
        }
        if value.is_instance_of::<PyDelta>() {
            return whole_seconds(&value).map(Self::Seconds);
        }
        let class = value.get_type().name()?;
        let message = format!("want a str or a timedelta, not {class}");
        Err(PyTypeError::new_err(message))
    }
}

fn whole_seconds(delta: &Bound<'_, PyAny>) -> PyResult<Given<u64>> {
    let days = delta.getattr("days")?.extract()?;
    let seconds = delta.getattr("seconds")?.extract()?;
    // Not by microseconds: pandas' Timedelta has nanoseconds beside them.
    if !delta.eq(PyDelta::new(delta.py(), days, seconds, 0, true)?)? {
        let reason = "the timedelta is no whole number of seconds";
        return Ok(Given::Unfit(Code::InvalidArgument, reason));
    }
    let total = i64::from(days) * 86_400 + i64::from(seconds);
    let unfit = Given::Unfit(Code::InvalidArgument, "the timedelta is negative");
    Ok(u64::try_from(total).map_or(unfit, Given::Fits))
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
pub(crate) enum Document {
    Text(PyBackedStr),
    Bytes(Chunk),
}

impl<'py> FromPyObject<'_, 'py> for Document {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = value.cast::<PyString>() else {
            let class = value.get_type().name()?;
            let wrong = |_| PyTypeError::new_err(format!("want str or bytes, not {class}"));
            return value.extract().map(Self::Bytes).map_err(wrong);
        };
        if let Ok(text) = text.extract() {
            return Ok(Self::Text(text));
        }
        // As bytes, a lone surrogate is for the core to refuse, at its offset.
        let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
        bytes.extract().map(Self::Bytes)
    }
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
