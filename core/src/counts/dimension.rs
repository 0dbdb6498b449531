//! The dimensions that counts are grouped by.

use std::fmt;

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::counts::metric::Metric;
use crate::error::{Error, Result};
use crate::text::harmless;
use crate::wire::json::writer::json_of;

crate::names! {
    /// A group-by field of the Event Metrics API (service reference 2.4).
    pub enum Dimension {
        /// Name of the event.
        EventName = "event_name",
        /// Source write key.
        WriteKey = "write_key",
        /// Destination integration.
        Integration = "integration",
        /// Filtering reason, if applicable; event delivery only.
        Reason = "reason",
    }
}

impl AsRef<str> for Dimension {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Dimension {
    /// The dimension with exactly that name.
    ///
    /// # Errors
    /// `unknown_dimension` for `dimensions`.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| unknown("dimensions", name))
    }
}

impl Parameter for Vec<Dimension> {
    const KIND: Kind = Kind::Texts;

    fn from_value(value: Value) -> Result<Self> {
        let names = <Vec<String>>::from_value(value)?;
        names.iter().map(|name| Dimension::parse(name)).collect()
    }
}

impl Metric {
    /// Whether the endpoint can group by that dimension (service reference 2.4).
    #[must_use]
    pub const fn has(self, dimension: Dimension) -> bool {
        match self {
            Self::EventDelivery => true,
            Self::EventIngestion => !matches!(dimension, Dimension::Reason),
        }
    }
}

/// Up to four different dimensions in the caller's order, which is also the sorting order of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    items: [Dimension; 4],
    len: u8,
}

impl Dimensions {
    /// The number of all dimensions.
    pub(crate) const MOST: usize = Dimension::ALL.len();

    /// Parses a list of names, which may be empty, into dimensions. `argument` names the argument
    /// in errors.
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`.
    pub(crate) fn parse<S: AsRef<str>>(argument: &'static str, names: &[S]) -> Result<Self> {
        Self::parse_each(argument, &mut names.iter().map(AsRef::as_ref))
    }

    /// The same, compiled once for all kinds of names.
    fn parse_each(argument: &'static str, names: &mut dyn Iterator<Item = &str>) -> Result<Self> {
        let mut dimensions = Self { items: [Dimension::EventName; 4], len: 0 };
        for name in names {
            let dimension = Dimension::from_name(name).ok_or_else(|| unknown(argument, name))?;
            if dimensions.position(dimension).is_some() {
                let message = format!("{dimension} is named twice; name each dimension once");
                return Err(Error::argument(argument, Code::RepeatedDimension, message));
            }
            dimensions.push(dimension);
        }
        Ok(dimensions)
    }

    /// Parses the dimensions of a request: one to four different names.
    ///
    /// # Errors
    /// `no_dimensions`, `unknown_dimension` and `repeated_dimension`.
    pub fn requested<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let dimensions = Self::parse("dimensions", names)?;
        if dimensions.len == 0 {
            let message = "want one to four of event_name, write_key, integration and reason";
            return Err(Error::argument("dimensions", Code::NoDimensions, message));
        }
        Ok(dimensions)
    }

    /// Parses the dimensions of a table: up to four different names.
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`.
    pub fn kept<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        Self::parse("dimensions", names)
    }

    /// Parses the dimensions to keep: any of `self`, in any order, or none for one grand total.
    ///
    /// # Errors
    /// `unknown_dimension` (also for one that `self` lacks) and `repeated_dimension`.
    pub fn subset<S: AsRef<str>>(&self, names: &[S]) -> Result<Self> {
        let kept = Self::parse("group_by", names)?;
        match kept.iter().find(|dimension| self.position(*dimension).is_none()) {
            None => Ok(kept),
            Some(missing) => {
                let message = format!("{missing} is not among the dimensions {self:?}");
                Err(Error::argument("group_by", Code::UnknownDimension, message))
            }
        }
    }

    /// Refuses dimensions that the endpoint of `metric` can't group by (service reference 4.5).
    ///
    /// # Errors
    /// `unknown_dimension`.
    pub(crate) fn check_available(&self, metric: Metric) -> Result<()> {
        match self.iter().find(|dimension| !metric.has(*dimension)) {
            None => Ok(()),
            Some(dimension) => {
                let message = format!("{} does not have {dimension}", metric.as_str());
                Err(Error::argument("dimensions", Code::UnknownDimension, message))
            }
        }
    }

    fn push(&mut self, dimension: Dimension) {
        self.items[usize::from(self.len)] = dimension;
        self.len += 1;
    }

    /// The number of dimensions.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are no dimensions, as in a grand total.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The dimensions in order.
    pub fn iter(&self) -> impl Iterator<Item = Dimension> + '_ {
        self.as_slice().iter().copied()
    }

    /// The dimensions in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Dimension] {
        &self.items[..self.len()]
    }

    /// The names in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(Dimension::as_str).collect()
    }

    /// The positions of the other dimensions that are among these.
    pub(crate) fn positions(&self, others: &Self) -> Vec<usize> {
        others.iter().filter_map(|other| self.position(other)).collect()
    }

    /// The position of a dimension; `None` if it is not among these.
    #[must_use]
    pub fn position(&self, dimension: Dimension) -> Option<usize> {
        self.iter().position(|item| item == dimension)
    }
}

impl fmt::Debug for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.iter().map(|name| format!("\"{name}\"")).collect();
        write!(f, "[{}]", names.join(", "))
    }
}

fn unknown(argument: &'static str, name: &str) -> Error {
    let message = format!(
        "{} is not a dimension; want event_name, write_key, integration or reason",
        json_of(&harmless(excerpt(name)))
    );
    Error::argument(argument, Code::UnknownDimension, message)
}

/// The start of a caller's text, short enough for a message.
fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(40) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_no_character_that_is_not_seen() {
        let error = Dimensions::kept(&["a\u{202e}b\u{1b}\u{9b}\n"]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("\"a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}\" is not a dimension"),
            "{text}"
        );
    }
}
