//! Deviations from the service reference that a caller tolerates.

use crate::arguments::names::want_one_of;
use crate::arguments::{Kind, Parameter, Value};
use crate::error::Result;

crate::names! {
    /// A deviation from the service reference that a Beta might send and that a caller may
    /// tolerate. Each occurrence is counted in [`Notes`](crate::Notes).
    #[non_exhaustive]
    pub enum Tolerance {
        /// Entries of the same combination of dimension values, which are added up.
        RepeatedCombination = "repeated_combination",
        /// A dimension value of `null`, which is read as an empty string.
        NullDimension = "null_dimension",
    }
}

/// Which deviations to tolerate. Each occurrence is counted in [`Notes`](crate::Notes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerate {
    /// See [`Tolerance::RepeatedCombination`].
    pub repeated_combination: bool,
    /// See [`Tolerance::NullDimension`].
    pub null_dimension: bool,
}

impl Tolerate {
    /// Parses names of [`Tolerance`].
    ///
    /// # Errors
    /// `invalid_argument` for any other name.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let mut tolerate = Self::default();
        for name in names {
            match Tolerance::from_name(name.as_ref()) {
                Some(Tolerance::RepeatedCombination) => tolerate.repeated_combination = true,
                Some(Tolerance::NullDimension) => tolerate.null_dimension = true,
                None => return Err(want_one_of(Tolerance::NAMES).with_argument("tolerate")),
            }
        }
        Ok(tolerate)
    }
}

impl Parameter for Tolerate {
    const KIND: Kind = Kind::Texts;

    fn from_value(value: Value) -> Result<Self> {
        Self::parse(&Vec::<String>::from_value(value)?)
    }
}
