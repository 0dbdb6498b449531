//! Arguments as untyped JavaScript hands them over.

use js_sys::{Array, Date, Object, Reflect};
use tallyfold::arguments::{self, Argument, Arguments, Kind, Options, Parameter, Value};
use tallyfold::{Secret, Spelling, Timestamp};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Result, Thrown};

/// The options in an object, `argument` in errors about all of it; `others` are names that the facade handles.
pub(crate) fn options<T: Options>(argument: &str, value: &JsValue, others: &[&str]) -> Result<T> {
    arguments::read(&Fields::of(argument, value)?, others)
}

/// The names of the options of a kind, as a caller spells them.
pub(crate) fn names_of<T: Options>() -> impl Iterator<Item = String> {
    let read = |argument: &&Argument| !matches!(argument.kind, Kind::Host);
    let own = T::ARGUMENTS.iter().filter(read);
    own.map(|argument| argument.spelled(Spelling::JavaScript))
}

/// The value of one argument, where `null` is as good as absent.
pub(crate) fn optional<T: Parameter>(argument: &str, value: &JsValue) -> Result<Option<T>> {
    let Some(value) = read(argument, value, T::KIND)? else {
        return Ok(None);
    };
    let parsed = T::from_value(value);
    let named = |error: tallyfold::Error| match T::KIND {
        // It names `start` or `end`.
        Kind::Window => error,
        _ => error.with_argument(tallyfold::Name::of_caller(argument)),
    };
    Ok(Some(parsed.map_err(named)?))
}

/// The value of one argument.
pub(crate) fn required<T: Parameter>(argument: &str, value: &JsValue) -> Result<T> {
    optional(argument, value)?.ok_or_else(|| Thrown::missing(argument))
}

/// The fields of an options object.
pub(crate) struct Fields(JsValue);

impl Fields {
    /// `argument` names the object in errors.
    pub(crate) fn of(argument: &str, value: &JsValue) -> Result<Self> {
        if value.is_object() && !Array::is_array(value) {
            Ok(Self(value.clone()))
        } else {
            Err(Thrown::refused(argument, wanted(Kind::Nested(&[]))))
        }
    }

    /// What stands under a name in the object itself: what all objects inherit, another program may have set.
    pub(crate) fn get(&self, name: &str) -> Result<JsValue> {
        let name = name.into();
        if !Object::has_own(self.0.unchecked_ref::<Object>(), &name) {
            return Ok(JsValue::UNDEFINED);
        }
        Reflect::get(&self.0, &name).map_err(Thrown::foreign)
    }
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
        let object: &Object = self.0.unchecked_ref();
        Ok(Object::keys(object)
            .iter()
            .filter_map(|name| name.as_string())
            .collect())
    }
}

fn is_absent(value: &JsValue) -> bool {
    value.is_undefined() || value.is_null()
}

/// Says what a value must be.
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

/// A value as that kind, where `null` is as good as absent.
fn read(name: &str, value: &JsValue, kind: Kind) -> Result<Option<Value>> {
    if is_absent(value) {
        return Ok(None);
    }
    let read = match kind {
        Kind::Text | Kind::Address | Kind::Step => value.as_string().map(Value::Text),
        // The facade has made names and values of them, in turn.
        Kind::Texts | Kind::Mapping => texts(value).map(Value::Texts),
        Kind::Secret => value
            .as_string()
            .map(|text| Value::Secret(Secret::from(text))),
        Kind::Instant => instant(value).map(Value::Text),
        Kind::Window => Some(Value::Texts(edges(name, value)?)),
        Kind::Flag => value.as_bool().map(Value::Flag),
        Kind::Whole | Kind::Milliseconds => whole(value).map(Value::Whole),
        Kind::Patience => match value.as_f64() {
            Some(f64::INFINITY) => Some(Value::Endless),
            _ => whole(value).map(Value::Whole),
        },
        Kind::Pair => pair(value).map(Value::Pair),
        Kind::Nested(_) | Kind::Host => None,
    };
    let refused = || Thrown::refused(name, wanted(kind));
    read.map(Some).ok_or_else(refused)
}

/// The texts of an array of them.
pub(crate) fn texts(value: &JsValue) -> Option<Vec<String>> {
    let array = value.dyn_ref::<Array>()?;
    array.iter().map(|item| item.as_string()).collect()
}

/// What a property that is `undefined` means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The same as without the property.
    Skipped,
    Refused,
}

/// Names and values of an object whose values are a string or an array of strings.
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
        let one = value.as_string().map(|value| vec![value]);
        let values = one.or_else(|| texts(&value));
        let want = "want a string or an array of strings";
        let values = values.ok_or_else(|| Thrown::refused(&name, want))?;
        all.push((name, values));
    }
    Ok(all)
}

/// A number without a fraction that a double holds exactly, or a bigint of 64 bits.
fn whole(value: &JsValue) -> Option<i128> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match value.as_f64() {
        Some(number) => (number.fract() == 0.0 && number.abs() <= SAFE).then_some(number as i128),
        None => {
            let signed = i64::try_from(value.clone()).map(i128::from);
            signed
                .or_else(|_| u64::try_from(value.clone()).map(i128::from))
                .ok()
        }
    }
}

fn pair(value: &JsValue) -> Option<[i128; 2]> {
    let items = value.dyn_ref::<Array>()?.to_vec();
    let [one, other] = <[JsValue; 2]>::try_from(items).ok()?;
    Some([whole(&one)?, whole(&other)?])
}

/// Both edges of a window, an object of `start` and `end`.
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

/// The text of what counts nanoseconds as a bigint: a `Temporal.Instant` or `Temporal.ZonedDateTime`, the host's or
/// a polyfill's.
fn of_temporal(value: &JsValue) -> Option<String> {
    let nanoseconds = Reflect::get(value, &"epochNanoseconds".into()).ok()?;
    let instant = Timestamp::from_unix_ns(i64::try_from(nanoseconds).ok()?)?;
    Some(instant.to_string())
}

#[wasm_bindgen]
extern "C" {
    /// What a `Date` of any realm holds; nothing else has it.
    #[wasm_bindgen(catch, js_namespace = ["Date", "prototype", "getTime"], js_name = call)]
    fn time_of(date: &JsValue) -> std::result::Result<f64, JsValue>;
}

/// A timestamp as text; that of a `Date` or of a class of Temporal in ISO 8601.
fn instant(value: &JsValue) -> Option<String> {
    value
        .as_string()
        .or_else(|| of_temporal(value))
        .or_else(|| {
            let time = time_of(value).ok()?;
            if time.is_nan() {
                return Some("Invalid Date".to_owned());
            }
            Some(Date::new(&time.into()).to_iso_string().into())
        })
}
