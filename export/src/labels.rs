//! Labels that each sample gets.

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::{Code, Error, Result};

/// Labels that each sample gets, beside the values of its dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Takes names and values.
    ///
    /// # Errors
    /// `invalid_argument` for a name that is not of ASCII letters, digits and underscores, begins with a digit or with
    /// two underscores, or is given twice.
    pub fn new(labels: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut checked: Vec<(String, String)> = Vec::new();
        for (name, value) in labels {
            if !is_name(&name) || name.starts_with("__") {
                let message = format!(
                    "{name:?} is no name of a label: want ASCII letters, digits and underscores, and neither a digit nor \
                     two underscores at the beginning"
                );
                return Err(Error::new(Code::InvalidArgument, message));
            }
            if checked.iter().any(|(other, _)| *other == name) {
                let message = format!("the label {name} is given twice");
                return Err(Error::new(Code::InvalidArgument, message));
            }
            checked.push((name, value));
        }
        Ok(Self(checked))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Whether a text is of ASCII letters, digits and underscores, and does not begin with a digit.
pub(crate) fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_of_name) && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit()
}

impl Parameter for Labels {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        let flat: Vec<String> = Vec::from_value(value)?;
        let mut flat = flat.into_iter();
        let pairs = std::iter::from_fn(|| Some((flat.next()?, flat.next()?)));
        Self::new(pairs)
    }
}
