//! Arguments as untyped JavaScript hands them over: read field by field, and refused by name.

use js_sys::{Array, Object, Reflect};
use tallyfold::Secret;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Result, Thrown};

/// The fields of an options object.
pub(crate) struct Fields(JsValue);

impl Fields {
    /// `argument` names the object in errors.
    pub(crate) fn of(argument: &str, value: &JsValue) -> Result<Self> {
        if value.is_object() {
            Ok(Self(value.clone()))
        } else {
            Err(Thrown::refused(argument, "want an object"))
        }
    }

    /// A field's value, where `null` is as good as absent.
    pub(super) fn value(&self, name: &str) -> Result<Option<JsValue>> {
        let value = Reflect::get(&self.0, &name.into()).map_err(Thrown::foreign)?;
        Ok((!value.is_undefined() && !value.is_null()).then_some(value))
    }

    pub(super) fn parsed<T>(
        &self,
        name: &str,
        want: &str,
        parse: impl FnOnce(&JsValue) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.value(name)? {
            None => Ok(None),
            Some(value) => parse(&value)
                .map(Some)
                .ok_or_else(|| Thrown::refused(name, want)),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        self.parsed(name, "want a string", JsValue::as_string)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.parsed(name, "want an array of strings", texts)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self
            .parsed(name, "want true or false", JsValue::as_bool)?
            .unwrap_or_default())
    }

    pub(crate) fn integer<T: TryFrom<i128>>(&self, name: &str) -> Result<Option<T>> {
        self.parsed(name, "want a whole number in range", |value| {
            T::try_from(integer(value)?).ok()
        })
    }

    pub(super) fn secret(&self, name: &str) -> Result<Option<Secret>> {
        Ok(self.text(name)?.map(Secret::from))
    }

    pub(super) fn fields(&self, name: &str) -> Result<Option<Self>> {
        self.value(name)?
            .map(|value| Self::of(name, &value))
            .transpose()
    }

    /// The names of the fields, in the order of their making.
    pub(super) fn names(&self) -> Vec<String> {
        let object: &Object = self.0.unchecked_ref();
        Object::keys(object)
            .iter()
            .filter_map(|name| name.as_string())
            .collect()
    }

    /// A point in time, which the facade has turned into text if it was a `Date`.
    pub(super) fn instant(&self, name: &str) -> Result<Option<String>> {
        self.parsed(name, "want a Date or ISO 8601 text", JsValue::as_string)
    }

    pub(crate) fn required_instant(&self, name: &str) -> Result<String> {
        self.instant(name)?.ok_or_else(|| Thrown::missing(name))
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<String> {
        self.text(name)?.ok_or_else(|| Thrown::missing(name))
    }

    pub(crate) fn required_texts(&self, name: &str) -> Result<Vec<String>> {
        self.texts(name)?.ok_or_else(|| Thrown::missing(name))
    }
}

/// An argument that counts rows.
pub(crate) fn size(argument: &str, value: &JsValue) -> Result<usize> {
    let size = integer(value).and_then(|value| usize::try_from(value).ok());
    size.ok_or_else(|| Thrown::refused(argument, "want a whole number, 0 or more"))
}

/// An HTTP status, of three digits.
pub(crate) fn status(value: &JsValue) -> Result<u16> {
    let status = integer(value).filter(|value| (100..1000).contains(value));
    status
        .and_then(|value| u16::try_from(value).ok())
        .ok_or_else(|| Thrown::refused("status", "want a whole number from 100 to 999"))
}

/// A number without a fraction that a double holds exactly, or a bigint of 64 bits.
pub(super) fn integer(value: &JsValue) -> Option<i128> {
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

pub(super) fn texts(value: &JsValue) -> Option<Vec<String>> {
    value
        .dyn_ref::<Array>()?
        .iter()
        .map(|item| item.as_string())
        .collect()
}

/// An argument that is an array of strings.
pub(crate) fn strings(argument: &str, value: &JsValue) -> Result<Vec<String>> {
    texts(value).ok_or_else(|| Thrown::refused(argument, "want strings"))
}

/// An argument that is a string.
pub(crate) fn string(argument: &str, value: &JsValue) -> Result<String> {
    value
        .as_string()
        .ok_or_else(|| Thrown::refused(argument, "want a string"))
}
