//! The names and labels that all samples of an export share.

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::{Code, CountName, Dimension, Error, Metric, Result, Window};

use crate::sample::Group;
use crate::source::Source;

/// The label with the number of a revision.
const REVISION: &str = "revision";

/// The properties that all samples of an export share.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) names: Names,
    pub(crate) metric: Option<Metric>,
    /// All labels, sorted by their names.
    labels: Vec<Label>,
    /// The names of the dimensions, in the order of a row's values.
    pub(crate) dimensions: Vec<&'static str>,
    /// The labels of the caller, in the caller's order.
    pub(crate) own_labels: Labels,
    /// The number of the revision, if changes are exported.
    pub(crate) revision: Option<u32>,
    /// Whether running totals are exported.
    pub(crate) is_total: bool,
    /// Whether any change is negative.
    pub(crate) has_negative: bool,
    /// The approximate size of all label names, of the fixed label values and of a metric's name, in bytes.
    pub(crate) label_bytes: usize,
    leaves_out_empty: bool,
    /// The windows that are written, sorted.
    pub(crate) windows: Vec<Window>,
    /// The time of the caller's clock.
    pub(crate) now_ms: Option<i64>,
}

#[derive(Clone, Debug)]
struct Label {
    name: String,
    value: LabelValue,
}

#[derive(Clone, Debug)]
enum LabelValue {
    Fixed(String),
    /// The row's value of the dimension at this position.
    Dimension(usize),
}

impl Context {
    pub(crate) fn new(
        source: &Source,
        own_labels: Labels,
        name: Option<&str>,
        now_ms: Option<i64>,
        leaves_out_empty: bool,
    ) -> Result<Self> {
        let rows = &source.rows;
        let dimensions = rows.dimensions.names();
        let mut labels = Vec::new();
        for (name, value) in own_labels.iter() {
            if dimensions.contains(&name) || name == REVISION {
                let message = format!(
                    "{name} is the name of a dimension, or of the label of revisions; want another one"
                );
                return Err(Error::argument("labels", Code::InvalidArgument, message));
            }
            labels
                .push(Label { name: name.to_owned(), value: LabelValue::Fixed(value.to_owned()) });
        }
        for (position, name) in dimensions.iter().enumerate() {
            labels.push(Label { name: (*name).to_owned(), value: LabelValue::Dimension(position) });
        }
        if let Some(number) = source.revision {
            labels.push(Label {
                name: REVISION.to_owned(),
                value: LabelValue::Fixed(number.to_string()),
            });
        }
        labels.sort_by(|one, other| one.name.cmp(&other.name));
        let names = Names::of(name, rows.metric, &dimensions)?;
        Ok(Self {
            label_bytes: label_bytes(&labels) + names.stem("_").len() + 32,
            has_negative: source.has_negative(),
            names,
            metric: rows.metric,
            labels,
            own_labels,
            dimensions,
            revision: source.revision,
            is_total: source.is_total,
            leaves_out_empty,
            windows: rows.windows.iter().map(|rows| rows.window).collect(),
            now_ms,
        })
    }

    /// The labels of a group, sorted by name: the caller's labels, the values of its dimensions, and the revision.
    pub(crate) fn labels<'a>(
        &'a self,
        group: &Group<'a>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let values = group.values;
        self.labels_of(move |position| values[position])
    }

    /// Like [`Context::labels`], with a function that returns the value of the dimension at a position.
    pub(crate) fn labels_of<'a>(
        &'a self,
        value: impl Fn(usize) -> &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let labels = self.labels.iter().map(move |label| {
            let value = match &label.value {
                LabelValue::Fixed(value) => value,
                LabelValue::Dimension(position) => value(*position),
            };
            (&*label.name, value)
        });
        labels.filter(|(_, value)| !(self.leaves_out_empty && value.is_empty()))
    }

    /// The names of all labels, sorted.
    pub(crate) fn label_names(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|label| &*label.name)
    }

    /// Refuses another source of the same export that would have different columns, because its counts are of another
    /// kind or its labels have other names.
    pub(crate) fn check_sibling(&self, other: &Self) -> Result<()> {
        let subject = |of: &Self| {
            let kind = (of.revision.is_some(), of.is_total);
            (of.metric, of.dimensions.clone(), kind)
        };
        if subject(self) != subject(other) {
            let message = "the sources of an export have the same endpoint and the same dimensions";
            return Err(Error::argument("counts", Code::IncompatibleTables, message));
        }
        let names = self.own_labels.iter().map(|(name, _)| name);
        if !names.eq(other.own_labels.iter().map(|(name, _)| name)) {
            let message = "the labels of all sources have the same names in the same order";
            return Err(Error::argument("labels", Code::InvalidArgument, message));
        }
        Ok(())
    }

    /// Refuses labels of the caller with one of these names, which the format uses for something else.
    pub(crate) fn refuse_labels(&self, taken: &[&str]) -> Result<()> {
        let mut names = self.own_labels.iter().map(|(name, _)| name);
        let Some(name) = names.find(|name| taken.contains(name)) else {
            return Ok(());
        };
        let message = format!("this format uses the name {name} itself; want another one");
        Err(Error::argument("labels", Code::InvalidArgument, message))
    }

    /// Describes a count in words.
    pub(crate) fn what(&self, count: CountName) -> &'static str {
        match (self.metric, count) {
            (Some(Metric::EventIngestion), CountName::Success) => "Events ingested",
            (_, CountName::Success) => "Events delivered",
            (_, CountName::Errors) => "Events not sent due to an error",
            (_, CountName::Filtered) => "Events filtered",
        }
    }

    /// Describes a count in words, for formats that write the timestamp of a sample.
    pub(crate) fn help(&self, count: CountName) -> String {
        let what = self.what(count);
        match self.revision {
            None => format!("{what} in the window that ends 1 ms after the sample"),
            Some(_) => format!(
                "{what} in the window that ends 1 ms after the sample, as signed changes: sum all revisions"
            ),
        }
    }

    /// Describes a count in words, for formats that write the start and the end of a window.
    pub(crate) fn description(&self, count: CountName) -> String {
        let what = self.what(count);
        match self.revision {
            None if self.is_total => format!("{what} in all windows whose counts no longer change"),
            None => what.to_owned(),
            Some(_) => format!("{what}, as signed changes: sum all revisions"),
        }
    }
}

fn label_bytes(labels: &[Label]) -> usize {
    let labels = labels.iter().map(|label| {
        let value = match &label.value {
            LabelValue::Fixed(value) => value.len(),
            LabelValue::Dimension(_) => 0,
        };
        label.name.len() + value + 8
    });
    labels.sum()
}

/// The unit of all counts.
pub(crate) const UNIT: &str = "events";

/// The maximum length of a name that the caller sets, in bytes. With the dimensions and the count, the name of a metric
/// then has fewer than the 200 characters that Datadog accepts.
const LONGEST_NAME: usize = 100;

/// The names of the exported metrics. Counts by different dimensions get different metric names, even if the caller sets
/// the same name. So no sum over a metric counts an event twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// Creates the names for counts of a metric by these dimensions. `name` replaces `tallyfold` and the metric, as in
    /// [`ExportOptions`](crate::ExportOptions).
    ///
    /// # Errors
    /// `invalid_argument` for a name that is too long or empty, begins with a digit, or contains anything except ASCII
    /// letters, digits and underscores.
    pub fn new(metric: Metric, dimensions: &[Dimension], name: Option<&str>) -> Result<Self> {
        let dimensions: Vec<_> = dimensions.iter().map(|one| one.as_str()).collect();
        Self::of(name, Some(metric), &dimensions)
    }

    fn of(name: Option<&str>, metric: Option<Metric>, dimensions: &[&str]) -> Result<Self> {
        let mut words = Vec::new();
        if let Some(name) = name {
            if name.len() > LONGEST_NAME {
                let message = format!("this has {} bytes; want at most {LONGEST_NAME}", name.len());
                return Err(Error::argument("name", Code::InvalidArgument, message));
            }
            if !is_name(name) {
                let message = format!(
                    "{name:?}: want ASCII letters, digits and underscores, and no digit at the beginning"
                );
                return Err(Error::argument("name", Code::InvalidArgument, message));
            }
            words.push(name.to_owned());
        } else {
            words.push("tallyfold".to_owned());
            words.extend(metric.map(|metric| metric.as_str().to_owned()));
        }
        if !dimensions.is_empty() {
            words.push(format!("by_{}", dimensions.join("_")));
        }
        Ok(Self(words))
    }

    /// The common beginning of all names, with its words joined by a separator.
    pub(crate) fn stem(&self, separator: &str) -> String {
        self.0.join(separator)
    }

    /// The name of the gauge for a count of single windows, in Prometheus: `tallyfold_event_delivery_success_events`.
    #[must_use]
    pub fn window(&self, count: CountName) -> String {
        format!("{}_{count}_{UNIT}", self.stem("_"))
    }

    /// The name of the counter family for a count in a [`Ledger`](crate::Ledger):
    /// `tallyfold_event_delivery_success_settled_events`. The names of its samples end in `_total`.
    #[must_use]
    pub fn counter(&self, count: CountName) -> String {
        format!("{}_{count}_settled_{UNIT}", self.stem("_"))
    }

    /// The name of the gauge with the end of the newest window in a [`Ledger`](crate::Ledger).
    #[must_use]
    pub fn settled_until(&self) -> String {
        format!("{}_settled_until_seconds", self.stem("_"))
    }

    /// The name of a count in formats whose names have dots: `tallyfold.event_delivery.success`.
    #[must_use]
    pub fn dotted(&self, count: CountName) -> String {
        format!("{}.{count}", self.stem("."))
    }
}

/// Labels for each sample, in addition to the values of its dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Creates labels from names and values.
    ///
    /// # Errors
    /// `invalid_argument` for a name that is empty, contains anything except ASCII letters, digits and underscores,
    /// begins with a digit or with two underscores, or occurs twice.
    pub fn new(labels: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut checked: Vec<(String, String)> = Vec::new();
        for (name, value) in labels {
            if !is_name(&name) || name.starts_with("__") {
                let message = format!(
                    "{name:?} isn't a valid label name: want ASCII letters, digits and underscores, and neither a digit nor \
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

    /// Returns these labels, followed by others.
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

/// Whether a text consists of ASCII letters, digits and underscores, is not empty, and does not begin with a digit.
fn is_name(name: &str) -> bool {
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
