//! Parses a host's values into types that hold only valid values.

use super::argument::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;

/// An argument that may be absent.
impl<T: Parameter> Parameter for Option<T> {
    const KIND: Kind = T::KIND;

    fn from_value(value: Value) -> Result<Self> {
        T::from_value(value).map(Some)
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }

    fn choices() -> Vec<&'static str> {
        T::choices()
    }
}

impl Parameter for String {
    const KIND: Kind = Kind::Text;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text),
            _ => Err(unfit()),
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
}

impl Parameter for Vec<String> {
    const KIND: Kind = Kind::Texts;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Texts(texts) => Ok(texts),
            _ => Err(unfit()),
        }
    }
}

impl Parameter for Secret {
    const KIND: Kind = Kind::Secret;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Secret(secret) => Ok(secret),
            _ => Err(unfit()),
        }
    }
}

impl Parameter for bool {
    const KIND: Kind = Kind::Flag;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(unfit()),
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }
}

impl Parameter for (u32, u32) {
    const KIND: Kind = Kind::Pair;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Pair([one, other]) => Ok((whole(one)?, whole(other)?)),
            _ => Err(unfit()),
        }
    }
}

macro_rules! whole_numbers {
    ($($number:ty),+) => { $(
        impl Parameter for $number {
            const KIND: Kind = Kind::Whole;

            fn from_value(value: Value) -> Result<Self> {
                match value {
                    Value::Whole(number) => whole(number),
                    _ => Err(unfit()),
                }
            }

            fn to_value(&self) -> Option<Value> {
                i128::try_from(*self).ok().map(Value::Whole)
            }
        }

        impl WholeNumber for $number {
            const LEAST: i64 = <$number>::MIN as i64;
            const GREATEST: u64 = <$number>::MAX as u64;
        }
    )+ };
}

whole_numbers!(u16, u32, u64, usize, i64);

/// Parses a whole number between a least and a greatest value.
trait WholeNumber: TryFrom<i128> {
    const LEAST: i64;
    const GREATEST: u64;
}

fn whole<T: WholeNumber>(number: i128) -> Result<T> {
    T::try_from(number).map_err(|_| {
        let (least, greatest) = (T::LEAST, T::GREATEST);
        let message = format!("want a whole number from {least} to {greatest}");
        Error::new(Code::InvalidArgument, message)
    })
}

/// The error for a value of the wrong kind, which only a mistake in a binding can cause.
fn unfit() -> Error {
    Error::new(Code::InvalidArgument, "the host read another kind of value")
}
