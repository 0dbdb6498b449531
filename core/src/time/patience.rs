//! How long something may take.

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};

/// A time limit: a length of time, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// This many milliseconds.
    Milliseconds(u64),
    /// No limit.
    Endless,
}

impl Patience {
    /// The milliseconds; `None` without a limit.
    #[must_use]
    pub const fn ms(self) -> Option<u64> {
        match self {
            Self::Milliseconds(ms) => Some(ms),
            Self::Endless => None,
        }
    }
}

impl Parameter for Patience {
    const KIND: Kind = Kind::Patience;

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Endless => Ok(Self::Endless),
            Value::Whole(ms) => u64::try_from(ms)
                .map(Self::Milliseconds)
                .map_err(|_| Error::new(Code::InvalidArgument, "want a length of time, 0 or more")),
            _ => Err(Error::new(Code::InvalidArgument, "want a length of time")),
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Milliseconds(ms) => Value::Whole((*ms).into()),
            Self::Endless => Value::Endless,
        })
    }
}
