//! How much of a response is read before it is refused.

use serde::Serialize;

use crate::arguments::{Kind, Options, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};

crate::options! {
    /// How much of a response is read before it is refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    pub struct Limits: Default {
        /// How deeply objects and arrays may be nested (`depth_limit`).
        depth: usize = 32,
        /// The bytes of one string once its escapes are resolved (`string_limit`).
        string_bytes: usize = 64 * 1024,
        /// The keys of one object (`key_limit`).
        keys: usize = 1_000,
        /// The bytes of one body (`body_limit`).
        body_bytes: u64 = 4 * 1024 * 1024 * 1024,
        /// The groups of one table (`group_limit`).
        groups: usize = 4_000_000,
        /// The bytes of one table: for each distinct value, its own bytes and 32 more; for each group, 64 (`group_limit`).
        table_bytes: u64 = 512 * 1024 * 1024,
    }
}

/// The limits of an argument, each under its own name.
impl Parameter for Limits {
    const KIND: Kind = Kind::Nested(Self::ARGUMENTS);

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Nested(values) => Self::from_values(values),
            _ => Err(Error::new(Code::InvalidArgument, "want limits by their names")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tallyfold_engine::RowsLimits;

    use super::*;

    #[test]
    fn as_many_groups_as_are_allowed_may_each_have_an_identifier() {
        let limits = Limits::default();
        let identifier = "123e4567-e89b-12d3-a456-426614174000".len();
        let group = RowsLimits::PER_GROUP + RowsLimits::PER_VALUE + identifier;
        assert!((limits.groups * group) as u64 <= limits.table_bytes);
    }
}
