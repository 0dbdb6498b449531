//! Converts Python objects to plain values with serde: the reverse of `plain`. A struct is read from the attributes of an
//! object, whose names are in snake_case.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::plain::Failed;

/// Converts a Python object to a Rust value.
pub(crate) fn from_plain<T: DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    Ok(T::deserialize(PlainValue(value.clone()))?)
}

struct PlainValue<'py>(Bound<'py, PyAny>);

impl<'de> IntoDeserializer<'de, Failed> for PlainValue<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for PlainValue<'_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let value = &self.0;
        if value.is_none() {
            visitor.visit_unit()
        } else if value.is_instance_of::<PyBool>() {
            visitor.visit_bool(value.extract()?)
        } else if value.is_instance_of::<PyInt>() {
            match value.extract::<u64>() {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i128(value.extract()?),
            }
        } else if value.is_instance_of::<PyFloat>() {
            visitor.visit_f64(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            visitor.visit_string(value.extract()?)
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let items: Vec<Bound<'_, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
            visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(PlainValue)))
        } else if let Ok(dict) = value.cast::<PyDict>() {
            let pairs = dict.iter().map(|(key, value)| (PlainValue(key), PlainValue(value)));
            visitor.visit_map(MapDeserializer::new(pairs))
        } else {
            Err(Failed::custom("this isn't a plain value"))
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0.is_none() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let values = fields.iter().map(|field| {
            let name = snake_case(field);
            // A `datetime` is rounded to microseconds. Its text, in the attribute that ends in `_text`, is exact.
            let text = self.0.getattr_opt(format!("{name}_text"))?;
            let value = text.map_or_else(|| self.0.getattr(name), Ok)?;
            Ok((*field, PlainValue(value)))
        });
        let values: Vec<_> = values.collect::<PyResult<_>>()?;
        visitor.visit_map(MapDeserializer::new(values.into_iter()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// Converts camelCase to snake_case, such as `lnP` to `ln_p`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
