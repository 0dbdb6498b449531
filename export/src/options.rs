//! What is exported, and how.

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::{Code, Error, Result};

use crate::formats::Format;

tallyfold::names! {
    /// Which windows are written.
    pub enum Windows {
        /// Those that are covered whole and whose counts no longer change.
        Settled = "settled",
        /// All of them.
        All = "all",
    }
}

tallyfold::options! {
    /// What is exported, and how.
    #[derive(Clone, Debug)]
    pub struct ExportOptions {
        /// The format.
        format: Format,
        /// Labels that each sample gets, such as the cluster (service reference 8). Names consist of ASCII letters,
        /// digits and underscores; they are not those of a dimension.
        labels: Labels = Labels::default(),
        /// What the names of metrics begin with, in place of `tallyfold` and the endpoint. The dimensions follow, as in
        /// `tallyfold_event_delivery_by_integration`: counts by other dimensions are other metrics, so that no sum
        /// contains an event twice.
        name: Option<String> = None,
        /// Which windows are written. By default, CSV and NDJSON get all of them, and the other formats those that are
        /// settled: what another system has taken can't be taken back. A revision is always written.
        windows: Option<Windows> = None,
        /// Whether counts above 2^53 are refused, if the target stores 64-bit floats. By default, they are written, and
        /// a note says so.
        exact: bool = false,
        /// At most about how many bytes a piece has, before it is compressed. By default, what the target takes.
        max_bytes: Option<usize> = None,
        /// The host's clock, in milliseconds since 1970. StatsD has no times, and so takes only windows that just ended.
        now_ms: Option<i64> [Host] = None,
    }
}

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

    /// These labels, and others after them.
    ///
    /// # Errors
    /// `invalid_argument` for a name that both have.
    pub fn followed_by(&self, others: &Self) -> Result<Self> {
        Self::new(self.0.iter().chain(&others.0).cloned())
    }

    /// Names and values, in the caller's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
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
