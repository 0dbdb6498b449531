//! Converts plain values to Python objects with serde.
//!
//! A struct becomes an object of the class with the same name in the package `tallyfold`, which is called with the
//! fields in their order. Without such a class, the struct becomes a `dict`. A map becomes a `dict`, too. (The crate
//! `pythonize` makes only dicts.) A skipped field becomes `None`. A field whose name ends in `Ms` is a time in
//! milliseconds, and becomes a `float` of seconds.

use std::fmt::{self, Display};

use pyo3::IntoPyObjectExt;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyModule, PyTuple};
use serde::de;
use serde::ser::{self, Impossible, Serialize, Serializer};

/// Converts a value to a Python object.
pub(crate) fn plain<'py, T: Serialize + ?Sized>(
    py: Python<'py>,
    value: &T,
) -> PyResult<Bound<'py, PyAny>> {
    let has_classes = true;
    Ok(value.serialize(Plain { py, has_classes })?)
}

/// Converts a value to a Python object, with a `dict` for each struct.
pub(crate) fn dict<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    let has_classes = false;
    Ok(value.serialize(Plain { py, has_classes })?)
}

/// Makes an object of one of the package's classes, from fields that need not be plain values.
pub(crate) fn object<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    package(py)?.getattr(class)?.call1(fields)
}

/// The package that this module is a part of.
pub(crate) fn package(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static PACKAGE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("tallyfold").map(Bound::unbind);
    Ok(PACKAGE.get_or_try_init(py, import)?.bind(py))
}

#[derive(Clone, Copy)]
struct Plain<'py> {
    py: Python<'py>,
    has_classes: bool,
}

type Made<'py> = Result<Bound<'py, PyAny>, Failed>;

/// A failed conversion, as a Python exception.
#[derive(Debug)]
pub(crate) struct Failed(PyErr);

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: Display>(message: T) -> Self {
        Self(PyTypeError::new_err(message.to_string()))
    }
}

impl de::Error for Failed {
    fn custom<T: Display>(message: T) -> Self {
        Self(PyTypeError::new_err(message.to_string()))
    }
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> Self {
        failed.0
    }
}

/// The items of a list or of a tuple.
struct Items<'py> {
    plain: Plain<'py>,
    items: Vec<Bound<'py, PyAny>>,
}

impl<'py> Items<'py> {
    fn of(plain: Plain<'py>) -> Self {
        let items = Vec::new();
        Self { plain, items }
    }

    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Failed> {
        self.items.push(item.serialize(self.plain)?);
        Ok(())
    }
}

impl<'py> ser::SerializeSeq for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Failed> {
        self.push(item)
    }

    fn end(self) -> Made<'py> {
        Ok(PyList::new(self.plain.py, self.items)?.into_any())
    }
}

impl<'py> ser::SerializeTuple for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Failed> {
        self.push(item)
    }

    fn end(self) -> Made<'py> {
        Ok(PyTuple::new(self.plain.py, self.items)?.into_any())
    }
}

/// The fields of a struct.
struct Fields<'py> {
    class: &'static str,
    names: Vec<&'static str>,
    values: Items<'py>,
}

impl<'py> ser::SerializeStruct for Fields<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        let Plain { py, .. } = self.values.plain;
        let mut value = value.serialize(self.values.plain)?;
        if name.ends_with("Ms") && !value.is_none() {
            let ms: f64 = value.extract()?;
            value = (ms / 1000.0).into_bound_py_any(py)?;
        }
        self.names.push(name);
        self.values.items.push(value);
        Ok(())
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), Failed> {
        self.serialize_field(name, &())
    }

    fn end(self) -> Made<'py> {
        let Plain { py, has_classes } = self.values.plain;
        if has_classes && let Some(class) = package(py)?.getattr_opt(self.class)? {
            return Ok(class.call1(PyTuple::new(py, self.values.items)?)?);
        }
        let dict = PyDict::new(py);
        for (name, value) in self.names.into_iter().zip(self.values.items) {
            dict.set_item(name, value)?;
        }
        Ok(dict.into_any())
    }
}

/// The entries of a map.
struct Entries<'py> {
    plain: Plain<'py>,
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyAny>>,
}

impl<'py> ser::SerializeMap for Entries<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.key = Some(key.serialize(self.plain)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        let value = value.serialize(self.plain)?;
        Ok(self.dict.set_item(self.key.take(), value)?)
    }

    fn end(self) -> Made<'py> {
        Ok(self.dict.into_any())
    }
}

/// Makes the methods for values that pyo3 converts.
macro_rules! known {
    ($($function:ident $type:ty),+ $(,)?) => { $(
        fn $function(self, value: $type) -> Made<'py> {
            Ok(value.into_bound_py_any(self.py)?)
        }
    )+ };
}

impl<'py> Serializer for Plain<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeStruct = Fields<'py>;
    type SerializeTupleStruct = Impossible<Self::Ok, Failed>;
    type SerializeTupleVariant = Impossible<Self::Ok, Failed>;
    type SerializeMap = Entries<'py>;
    type SerializeStructVariant = Impossible<Self::Ok, Failed>;

    known! {
        serialize_bool bool, serialize_char char, serialize_str &str, serialize_bytes &[u8],
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_i128 i128, serialize_f32 f32, serialize_f64 f64,
    }

    fn serialize_none(self) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made<'py> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made<'py> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, Failed> {
        Ok(Items::of(self))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'py>, Failed> {
        Ok(Items::of(self))
    }

    fn serialize_struct(self, class: &'static str, _: usize) -> Result<Fields<'py>, Failed> {
        Ok(Fields { class, names: Vec::new(), values: Items::of(self) })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        class: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Made<'py> {
        Err(no_form(class))
    }

    fn serialize_tuple_struct(
        self,
        class: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Failed> {
        Err(no_form(class))
    }

    fn serialize_tuple_variant(
        self,
        class: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Failed> {
        Err(no_form(class))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'py>, Failed> {
        Ok(Entries { plain: self, dict: PyDict::new(self.py), key: None })
    }

    fn serialize_struct_variant(
        self,
        class: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Failed> {
        Err(no_form(class))
    }
}

/// The error for kinds of types that no result of the core has.
fn no_form(class: &str) -> Failed {
    ser::Error::custom(format!("a {class} has no form in Python"))
}
