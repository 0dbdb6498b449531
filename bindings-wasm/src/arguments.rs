//! Reads the arguments that untyped JavaScript passes.

use js_sys::{Array, Date, Object, Reflect};
use tallyfold::arguments::{self, Argument, Arguments, Kind, Options, Parameter, Value};
use tallyfold::{Secret, Spelling, Timestamp};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Result, Thrown};

/// Reads the options in an object. Errors about the whole object name it `argument`. `others` are the names of options that
/// the facade handles.
pub(crate) fn options<T: Options>(argument: &str, value: &JsValue, others: &[&str]) -> Result<T> {
    arguments::read(&Fields::of(argument, value)?, others)
}

/// The names of the options of a kind, as a caller spells them.
pub(crate) fn names_of<T: Options>() -> impl Iterator<Item = String> {
    let read = |argument: &&Argument| !matches!(argument.kind, Kind::Host);
    let own = T::ARGUMENTS.iter().filter(read);
    own.map(|argument| argument.spelled(Spelling::JavaScript))
}

/// Reads an optional argument. `null` counts as absent.
pub(crate) fn optional<T: Parameter>(argument: &str, value: &JsValue) -> Result<Option<T>> {
    let Some(value) = read(argument, value, T::KIND)? else {
        return Ok(None);
    };
    let parsed = T::from_value(value);
    let named = |error: tallyfold::Error| match T::KIND {
        // The error already names `start` or `end`.
        Kind::Window => error,
        _ => error.with_argument(tallyfold::Name::of_caller(argument)),
    };
    Ok(Some(parsed.map_err(named)?))
}

/// Reads an argument that must not be absent.
pub(crate) fn required<T: Parameter>(argument: &str, value: &JsValue) -> Result<T> {
    optional(argument, value)?.ok_or_else(|| Thrown::missing(argument))
}

/// The fields of an options object: a copy of it, because getters and proxies are code of the caller, which may throw.
pub(crate) struct Fields(Object);

impl Fields {
    /// `argument` names the object in errors.
    pub(crate) fn of(argument: &str, value: &JsValue) -> Result<Self> {
        if value.is_object() && !is_array(value).map_err(Thrown::foreign)? {
            // Without a prototype, because other code may have set properties that all objects inherit.
            let empty = Object::create(JsValue::NULL.unchecked_ref());
            Ok(Self(copy_of(&empty, value).map_err(Thrown::foreign)?))
        } else {
            Err(Thrown::refused(argument, wanted(Kind::Nested(&[]))))
        }
    }

    /// Returns the object's own property with this name.
    pub(crate) fn get(&self, name: &str) -> Result<JsValue> {
        Reflect::get(&self.0, &name.into()).map_err(Thrown::foreign)
    }
}

// These catch what the caller's code throws. An exception that passes through WebAssembly leaves locks and memory behind.
#[wasm_bindgen]
extern "C" {
    /// Whether this is an array. Fails for a proxy that was revoked.
    #[wasm_bindgen(catch, js_namespace = Array, js_name = isArray)]
    fn is_array(value: &JsValue) -> std::result::Result<bool, JsValue>;

    /// Copies the own properties of an object to another one, and returns the latter.
    #[wasm_bindgen(catch, js_namespace = Object, js_name = assign)]
    fn copy_of(to: &Object, from: &JsValue) -> std::result::Result<Object, JsValue>;

    /// A copy of an array.
    #[wasm_bindgen(catch, js_namespace = Array, js_name = from)]
    fn list_of(array: &JsValue) -> std::result::Result<Array, JsValue>;
}

impl Arguments for Fields {
    type Error = Thrown;

    const SPELLING: Spelling = Spelling::JavaScript;

    fn value(&self, name: &str, kind: Kind) -> Result<Option<Value>> {
        read(name, &self.get(name)?, kind)
    }

    fn nested(&self, name: &str) -> Result<Option<Self>> {
        let value = self.get(name)?;
        if is_absent(&value) {
            return Ok(None);
        }
        Self::of(name, &value).map(Some)
    }

    fn names(&self) -> Result<Vec<String>> {
        let names = Object::keys(&self.0);
        Ok(names.iter().filter_map(|name| name.as_string()).collect())
    }
}

fn is_absent(value: &JsValue) -> bool {
    value.is_undefined() || value.is_null()
}

/// What an argument of a kind must be, for errors.
fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Secret => "want a string",
        Kind::Texts => "want an array of strings",
        Kind::Address => "want a string or a URL",
        Kind::Instant => "want a Date, a Temporal.Instant or ZonedDateTime, or ISO 8601 text",
        Kind::Window => "want { start, end }",
        Kind::Step => "want a string such as \"15m\"",
        Kind::Flag => "want true or false",
        Kind::Whole | Kind::Milliseconds => "want a whole number",
        Kind::Pair => "want an array of two whole numbers",
        Kind::Patience => "want milliseconds, or Infinity",
        Kind::Mapping => "want an object of strings by their names",
        Kind::Nested(_) => "want an object",
        Kind::Host => "want another value",
    }
}

/// Reads a value of this kind. `null` counts as absent.
fn read(name: &str, value: &JsValue, kind: Kind) -> Result<Option<Value>> {
    if is_absent(value) {
        return Ok(None);
    }
    let read = match kind {
        Kind::Text | Kind::Address | Kind::Step => value.as_string().map(Value::Text),
        // The facade passes a mapping as alternating names and values.
        Kind::Texts | Kind::Mapping => texts(value)?.map(Value::Texts),
        Kind::Secret => value.as_string().map(|text| Value::Secret(Secret::from(text))),
        Kind::Instant => instant(value).map(Value::Text),
        Kind::Window => Some(Value::Texts(edges(name, value)?)),
        Kind::Flag => value.as_bool().map(Value::Flag),
        Kind::Whole | Kind::Milliseconds => whole(value).map(Value::Whole),
        Kind::Patience => match value.as_f64() {
            Some(f64::INFINITY) => Some(Value::Endless),
            _ => whole(value).map(Value::Whole),
        },
        Kind::Pair => pair(value)?.map(Value::Pair),
        Kind::Nested(_) | Kind::Host => None,
    };
    let refused = || Thrown::refused(name, wanted(kind));
    read.map(Some).ok_or_else(refused)
}

/// Returns the elements of an array; `None` for any other value.
fn items(value: &JsValue) -> Result<Option<Vec<JsValue>>> {
    if !is_array(value).map_err(Thrown::foreign)? {
        return Ok(None);
    }
    Ok(Some(list_of(value).map_err(Thrown::foreign)?.to_vec()))
}

/// Reads an array of texts; `None` for any other value.
pub(crate) fn texts(value: &JsValue) -> Result<Option<Vec<String>>> {
    let items = items(value)?;
    Ok(items.and_then(|items| items.iter().map(JsValue::as_string).collect()))
}

/// What to do with a property that is `undefined`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It counts as missing.
    Skipped,
    Refused,
}

/// Reads the names and values of an object. Each value is a string or an array of strings.
pub(crate) fn values_by_name(
    argument: &str,
    object: &JsValue,
    absent: Absent,
) -> Result<Vec<(String, Vec<String>)>> {
    let fields = Fields::of(argument, object)?;
    let mut all = Vec::new();
    for name in fields.names()? {
        let value = fields.get(&name)?;
        if value.is_undefined() && absent == Absent::Skipped {
            continue;
        }
        let values = match value.as_string() {
            Some(one) => Some(vec![one]),
            None => texts(&value)?,
        };
        let want = "want a string or an array of strings";
        let values = values.ok_or_else(|| Thrown::refused(&name, want))?;
        all.push((name, values));
    }
    Ok(all)
}

/// Reads a whole number: a number up to 2^53 - 1 in size, or a bigint of 64 bits, with or without a sign.
fn whole(value: &JsValue) -> Option<i128> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match value.as_f64() {
        Some(number) => (number.fract() == 0.0 && number.abs() <= SAFE).then_some(number as i128),
        None => {
            let signed = i64::try_from(value.clone()).map(i128::from);
            signed.or_else(|_| u64::try_from(value.clone()).map(i128::from)).ok()
        }
    }
}

fn pair(value: &JsValue) -> Result<Option<[i128; 2]>> {
    let items = items(value)?;
    let both = items.and_then(|items| <[JsValue; 2]>::try_from(items).ok());
    Ok(both.and_then(|[one, other]| Some([whole(&one)?, whole(&other)?])))
}

/// Reads both edges of a window from an object with `start` and `end`.
fn edges(name: &str, value: &JsValue) -> Result<Vec<String>> {
    let window = Fields::of(name, value)?;
    let edge = |name| {
        let edge = read(name, &window.get(name)?, Kind::Instant)?;
        match edge {
            Some(Value::Text(edge)) => Ok(edge),
            _ => Err(Thrown::missing(name)),
        }
    };
    Ok(vec![edge("start")?, edge("end")?])
}

/// Reads a `Temporal.Instant` or `Temporal.ZonedDateTime`, of the host or a polyfill, as text. Both have the property
/// `epochNanoseconds`, a bigint.
fn of_temporal(value: &JsValue) -> Option<String> {
    let nanoseconds = Reflect::get(value, &"epochNanoseconds".into()).ok()?;
    let instant = Timestamp::from_unix_ns(i64::try_from(nanoseconds).ok()?)?;
    Some(instant.to_string())
}

#[wasm_bindgen]
extern "C" {
    /// The time of a `Date` of any realm. Fails for any other value.
    #[wasm_bindgen(catch, js_namespace = ["Date", "prototype", "getTime"], js_name = call)]
    fn time_of(date: &JsValue) -> std::result::Result<f64, JsValue>;
}

/// Reads a timestamp as text. A `Date` or an object of Temporal becomes ISO 8601 text.
fn instant(value: &JsValue) -> Option<String> {
    value.as_string().or_else(|| of_temporal(value)).or_else(|| {
        let time = time_of(value).ok()?;
        if time.is_nan() {
            return Some("Invalid Date".to_owned());
        }
        Some(Date::new(&time.into()).to_iso_string().into())
    })
}
