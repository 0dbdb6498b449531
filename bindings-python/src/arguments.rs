//! Reads the arguments of Python calls.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyMapping, PyMemoryView,
    PyString, PyTuple, PyTzInfo,
};
use tallyfold::arguments::{self, Arguments, Kind, Options, Parameter, Value};
use tallyfold::{Code, Limits, Name, Secret, Spelling};

use crate::error::{Failure, Result};
use crate::plain::{dict, package};

/// The positional arguments of a call.
pub(crate) type Positional<'py> = &'py Bound<'py, PyTuple>;

/// The keyword arguments of a call.
pub(crate) type Named<'py> = &'py Bound<'py, PyDict>;

/// Reads the options of a function. The first `most` may be positional. `others` are the names of keyword arguments that
/// the facade handles.
pub(crate) fn options<T: Options>(
    most: usize,
    positional: Positional<'_>,
    named: Option<Named<'_>>,
    others: &[&str],
) -> Result<T> {
    arguments::read(&CallArguments::of::<T>(most, positional, named)?, others)
}

/// Reads the options of a function that accepts keyword arguments only.
pub(crate) fn keywords<T: Options>(
    py: Python<'_>,
    named: Option<Named<'_>>,
    others: &[&str],
) -> Result<T> {
    options(0, &PyTuple::empty(py), named, others)
}

/// Reads one argument. Python's `None` stands for an argument that was not given, except for a [`Kind::Patience`], where
/// it means no limit.
pub(crate) fn optional<T: Parameter>(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<T>> {
    let Some(value) = read_if(name, value, T::KIND)? else {
        return Ok(None);
    };
    let parsed = T::from_value(value);
    let parsed = parsed.map_err(|error| error.with_argument(Name::of_caller(name)));
    Ok(Some(parsed?))
}

/// Reads one argument that must be given.
pub(crate) fn required<T: Parameter>(name: &str, value: &Bound<'_, PyAny>) -> Result<T> {
    let refused = || Failure::wrong_type(name, wanted(T::KIND), value);
    optional(name, value)?.ok_or_else(refused)
}

/// Reads a timestamp as text.
pub(crate) fn instant(name: &str, value: &Bound<'_, PyAny>) -> Result<String> {
    let refused = || Failure::wrong_type(name, wanted(Kind::Instant), value);
    instant_if(name, value)?.ok_or_else(refused)
}

/// Casts an argument to a class of this package.
pub(crate) fn instance<'a, 'py, T: PyTypeInfo>(
    name: &str,
    wanted: &str,
    value: &'a Bound<'py, PyAny>,
) -> Result<&'a Bound<'py, T>> {
    let refused = |_| Failure::wrong_type(name, wanted, value);
    value.cast().map_err(refused)
}

/// Reads one text, or any iterable of texts.
pub(crate) fn one_or_more(name: &str, value: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    if let Some(text) = text(name, value)? {
        return Ok(vec![text]);
    }
    let refused = || Failure::wrong_type(name, "want a str or an iterable of str", value);
    // A mapping would be read as its keys, which are hardly what the caller means. Empty bytes would be read as no value.
    if value.cast::<PyMapping>().is_ok() || is_bytes(value) {
        return Err(refused());
    }
    let items = value.try_iter().map_err(|_| refused())?;
    let texts = items.map(|item| text(name, &item?)?.ok_or_else(refused));
    texts.collect()
}

/// Returns all limits by name. Limits that are not given have their defaults.
#[pyfunction]
#[pyo3(signature = (**limits))]
pub(crate) fn limits_of<'py>(
    py: Python<'py>,
    limits: Option<Named<'_>>,
) -> Result<Bound<'py, PyAny>> {
    Ok(dict(py, &keywords::<Limits>(py, limits, &[])?)?)
}

/// Arguments by name: the arguments of a function, or the attributes of an object.
enum CallArguments<'py> {
    Named(Bound<'py, PyDict>),
    Attributes(Bound<'py, PyAny>),
}

impl<'py> CallArguments<'py> {
    fn of<T: Options>(
        most: usize,
        positional: Positional<'py>,
        named: Option<Named<'py>>,
    ) -> PyResult<Self> {
        let all = named.map_or_else(|| Ok(PyDict::new(positional.py())), |named| named.copy())?;
        let count = positional.len();
        if count > most {
            let message = format!("want at most {most} positional arguments, not {count}");
            return Err(PyTypeError::new_err(message));
        }
        for (argument, value) in T::ARGUMENTS.iter().zip(positional) {
            let name = argument.spelled(Spelling::Python);
            if all.contains(&name)? {
                let message = format!("{name} is given by position and by name");
                return Err(PyTypeError::new_err(message));
            }
            all.set_item(name, value)?;
        }
        Ok(Self::Named(all))
    }

    /// Returns the value of an argument, if it was given.
    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Named(given) => given.get_item(name),
            Self::Attributes(object) => object.getattr_opt(name),
        }
    }
}

impl Arguments for CallArguments<'_> {
    type Error = Failure;

    const SPELLING: Spelling = Spelling::Python;

    fn value(&self, name: &str, kind: Kind) -> Result<Option<Value>> {
        match self.get(name)? {
            Some(value) => read_if(name, &value, kind),
            None => Ok(None),
        }
    }

    fn nested(&self, name: &str) -> Result<Option<Self>> {
        let Some(value) = self.get(name)?.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        // Only `Limits` has nested arguments.
        let class = package(value.py())?.getattr("Limits")?;
        if value.is_instance(&class)? {
            return Ok(Some(Self::Attributes(value)));
        }
        Err(Failure::wrong_type(name, wanted(Kind::Nested(&[])), &value))
    }

    fn names(&self) -> Result<Vec<String>> {
        match self {
            Self::Named(given) => Ok(given.keys().iter().map(|name| name.to_string()).collect()),
            Self::Attributes(_) => Ok(Vec::new()),
        }
    }
}

/// Describes the values that a kind of argument accepts, for error messages.
fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Address => "want a str",
        Kind::Texts => "want a sequence of str",
        Kind::Secret => "want a str of Unicode text",
        Kind::Instant => "want a datetime or a str",
        Kind::Window => "want a pair (start, end)",
        Kind::Step => "want a str or a timedelta",
        Kind::Flag => "want True or False",
        Kind::Whole => "want an int",
        Kind::Pair => "want a pair of ints",
        Kind::Milliseconds => "want a number of seconds, 0 or more",
        Kind::Patience => "want a number of seconds, or None",
        Kind::Mapping => "want a dict of str to str",
        Kind::Nested(_) => "want Limits",
        Kind::Host => "want another value",
    }
}

/// Reads a value of a kind. Python's `None` means that the argument was not given; for a patience, it means no limit.
fn read_if(name: &str, value: &Bound<'_, PyAny>, kind: Kind) -> Result<Option<Value>> {
    match kind {
        Kind::Patience if value.is_none() => Ok(Some(Value::Endless)),
        _ if value.is_none() => Ok(None),
        _ => read(name, value, kind).map(Some),
    }
}

fn read(name: &str, value: &Bound<'_, PyAny>, kind: Kind) -> Result<Value> {
    let wanted = wanted(kind);
    let wrong_type = || match wrong_item(value, kind) {
        Some(item) => Failure::wrong_item(name, wanted, &item),
        None => Failure::wrong_type(name, wanted, value),
    };
    let read = match kind {
        Kind::Text | Kind::Address => text(name, value)?.map(Value::Text),
        Kind::Texts => texts(name, value)?.map(Value::Texts),
        // Python's own error would quote the text.
        Kind::Secret => match value.extract::<String>() {
            Ok(text) => Some(Value::Secret(Secret::from(text))),
            Err(_) => return Err(Failure::refused(name, Code::InvalidArgument, wanted)),
        },
        Kind::Instant => instant_if(name, value)?.map(Value::Text),
        Kind::Window => match pair(value) {
            Some([start, end]) => {
                Some(Value::Texts(vec![instant("start", &start)?, instant("end", &end)?]))
            }
            None => None,
        },
        Kind::Step => step(name, value)?.map(Value::Text),
        Kind::Flag => value.extract().ok().map(Value::Flag),
        Kind::Whole => whole(value)?.map(Value::Whole),
        Kind::Pair => match pair(value) {
            Some([one, other]) => match (whole(&one)?, whole(&other)?) {
                (Some(one), Some(other)) => Some(Value::Pair([one, other])),
                _ => None,
            },
            None => None,
        },
        Kind::Milliseconds | Kind::Patience => match seconds(value)? {
            Some(seconds) if seconds >= 0.0 => {
                // A time that is too large becomes the largest `u64`, which the core refuses.
                Some(Value::Whole(((seconds * 1000.0).round() as u64).into()))
            }
            Some(_) => return Err(Failure::refused(name, Code::InvalidArgument, wanted)),
            None => None,
        },
        Kind::Mapping => mapping(value).map(Value::Texts),
        Kind::Nested(_) | Kind::Host => None,
    };
    read.ok_or_else(wrong_type)
}

/// Returns the first item of the wrong type, if the value itself has the right type.
fn wrong_item<'py>(value: &Bound<'py, PyAny>, kind: Kind) -> Option<Bound<'py, PyAny>> {
    let items: Vec<Bound<'py, PyAny>> = match kind {
        _ if is_bytes(value) => return None,
        Kind::Texts => value.extract().ok()?,
        Kind::Pair => pair(value)?.into(),
        Kind::Mapping => {
            let items = value.cast::<PyMapping>().ok()?.items().ok()?;
            let pairs = items.iter().filter_map(|item| pair(&item));
            pairs.flatten().collect()
        }
        _ => return None,
    };
    let is_right = |item: &Bound<'py, PyAny>| match kind {
        Kind::Pair => matches!(whole(item), Ok(Some(_))),
        _ => item.is_instance_of::<PyString>(),
    };
    items.into_iter().find(|item| !is_right(item))
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<String>> {
    let Ok(text) = value.cast::<PyString>() else {
        return Ok(None);
    };
    let surrogate = |_| Failure::refused(name, Code::InvalidArgument, LONE_SURROGATE);
    text.extract().map(Some).map_err(surrogate)
}

const LONE_SURROGATE: &str = "the text has a lone surrogate";

/// Reads the texts of any sequence. Returns `None` for anything else, including a `str` and bytes, even if they are empty.
fn texts(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<Vec<String>>> {
    if is_bytes(value) {
        return Ok(None);
    }
    let Ok(items) = value.extract::<Vec<Bound<'_, PyAny>>>() else {
        return Ok(None);
    };
    items.iter().map(|item| text(name, item)).collect()
}

fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
}

/// Reads any mapping of `str` to `str`. Returns its names and values alternately.
fn mapping(value: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    let items = value.cast::<PyMapping>().ok()?.items().ok()?;
    let pairs = items.iter().map(|item| item.extract());
    let pairs: Vec<[String; 2]> = pairs.collect::<PyResult<_>>().ok()?;
    Some(pairs.into_iter().flatten().collect())
}

fn pair<'py>(value: &Bound<'py, PyAny>) -> Option<[Bound<'py, PyAny>; 2]> {
    value.extract::<Vec<_>>().ok()?.try_into().ok()
}

/// Reads an `int`, or an object that Python accepts as an index, but not a `bool`. If the number does not fit, returns the
/// nearest `i128`.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<Option<i128>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    match value.extract() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            let nearest = if value.lt(0)? { i128::MIN } else { i128::MAX };
            Ok(Some(nearest))
        }
        Err(_) => Ok(None),
    }
}

fn seconds(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    match value.extract() {
        Ok(seconds) => Ok(Some(seconds)),
        // An `int` that is too large for a float.
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(Some(if value.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        Err(_) => Ok(None),
    }
}

/// Reads a timestamp as text: a `str` unchanged, an aware `datetime` in UTC with a `Z`. Returns `None` for other types.
fn instant_if(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<String>> {
    let refused = |message| Err(Failure::refused(name, Code::InvalidTimestamp, message));
    if let Ok(text) = value.cast::<PyString>() {
        return text.extract().map_or_else(|_| refused(LONE_SURROGATE), |text| Ok(Some(text)));
    }
    if let Ok(moment) = value.cast::<PyDateTime>() {
        // Only the `NaT` of pandas is not equal to itself.
        if moment.ne(moment)? {
            return refused("NaT isn't a timestamp");
        }
        let offset = moment.call_method0("utcoffset").map_err(|error| {
            let message = "the datetime's time zone has failed to give an offset from UTC";
            Failure::refused(name, Code::InvalidTimestamp, message).because(value.py(), error)
        })?;
        if offset.is_none() {
            return refused(
                "a naive datetime isn't a timestamp: give it a time zone, such as datetime.timezone.utc",
            );
        }
        // In time zones west of Greenwich, for example, the last hours of the year 9999 are in the year 10000 in UTC.
        let message = "the datetime is outside of the years 1 to 9999 in UTC";
        return in_utc(moment).map_or_else(|_| refused(message), |text| Ok(Some(text)));
    }
    if value.is_instance_of::<PyDate>() {
        return refused("a date isn't a timestamp: want a datetime with a time zone");
    }
    Ok(None)
}

fn in_utc(moment: &Bound<'_, PyDateTime>) -> PyResult<String> {
    let utc = moment.call_method1("astimezone", (PyTzInfo::utc(moment.py())?,))?;
    let text: String = utc.call_method0("isoformat")?.extract()?;
    Ok(text.replace("+00:00", "Z"))
}

/// Reads a step as text: a `str` unchanged, a `timedelta` as a number of seconds. Returns `None` for other types.
fn step(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<String>> {
    if value.is_instance_of::<PyString>() {
        return text(name, value);
    }
    if !value.is_instance_of::<PyDelta>() {
        return Ok(None);
    }
    let (days, seconds): (i32, i32) =
        (value.getattr("days")?.extract()?, value.getattr("seconds")?.extract()?);
    // Compares the whole value, because the `Timedelta` of pandas has nanoseconds in addition to `microseconds`.
    if !value.eq(PyDelta::new(value.py(), days, seconds, 0, true)?)? {
        let message = "the timedelta isn't a whole number of seconds";
        return Err(Failure::refused(name, Code::InvalidArgument, message));
    }
    Ok(Some(format!("{}s", i64::from(days) * 86_400 + i64::from(seconds))))
}
