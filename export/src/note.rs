//! What a caller should know about an export or a ledger.

use std::fmt;

use serde::{Serialize, Serializer};
use tallyfold::Window;

tallyfold::names! {
    /// The kind of a note about an export.
    #[non_exhaustive]
    pub enum NoteKind {
        /// A count is above 2^53, and the target stores 64-bit floats.
        InexactCount = "inexact_count",
        /// Windows were left out, because their counts may still change or because they are not fully covered.
        WindowsLeftOut = "windows_left_out",
        /// A value is longer than a system that reads the format accepts.
        LongValue = "long_value",
        /// There are more labels, or longer names of labels, than a system that reads the format accepts.
        LabelLimit = "label_limit",
    }
}

/// What a caller should know about an export. Formatted as text, it is a sentence without advice: a caller that spells
/// the names of options differently adds its own advice. [`Note::message`] adds the advice with the names of this
/// library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A count is above 2^53, and the target stores 64-bit floats.
    InexactCount {
        /// The values of its group.
        values: Vec<String>,
        /// Its window.
        window: Window,
        /// The count.
        count: u64,
    },
    /// A total of a ledger is above 2^53, and Prometheus stores 64-bit floats.
    InexactTotal {
        /// The values of its group.
        values: Vec<String>,
        /// The total.
        total: u64,
    },
    /// Windows were left out, because their counts may still change or because they are not fully covered.
    /// [`ExportOptions::windows`](crate::ExportOptions::windows) controls this.
    WindowsLeftOut {
        /// How many.
        windows: usize,
        /// From the start of the first window to the end of the last one.
        range: Window,
    },
    /// A value is longer than a system that reads the format accepts.
    LongValue {
        /// Its dimension, or the label of the caller.
        label: String,
        /// Its length in bytes.
        bytes: usize,
        /// How many bytes that system accepts by default.
        most: usize,
        /// The name of that system.
        reader: &'static str,
    },
    /// The name of a label is longer than a system that reads the format accepts.
    LongName {
        /// The name.
        label: String,
        /// How many bytes that system accepts by default.
        most: usize,
        /// The name of that system.
        reader: &'static str,
    },
    /// Series have more labels than a system that reads the format accepts.
    ManyLabels {
        /// How many labels they have in that system.
        labels: usize,
        /// How many it accepts by default.
        most: usize,
        /// The name of that system.
        reader: &'static str,
    },
}

impl Note {
    /// The kind of the note.
    #[must_use]
    pub fn kind(&self) -> NoteKind {
        match self {
            Self::InexactCount { .. } | Self::InexactTotal { .. } => NoteKind::InexactCount,
            Self::WindowsLeftOut { .. } => NoteKind::WindowsLeftOut,
            Self::LongValue { .. } => NoteKind::LongValue,
            Self::LongName { .. } | Self::ManyLabels { .. } => NoteKind::LabelLimit,
        }
    }

    /// A sentence for people. If windows were left out, it names the option that includes them.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::WindowsLeftOut { .. } => {
                format!("{self}; the option windows with \"all\" writes them too")
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InexactCount { values, window, count } => write!(
                f,
                "a count of {values:?} in {window:?}, {count}, is above 2^53: the target stores it as a 64-bit float, which \
                 rounds it"
            ),
            Self::InexactTotal { values, total } => write!(
                f,
                "a total of {values:?}, {total}, is above 2^53: Prometheus stores it as a 64-bit float, which rounds it"
            ),
            Self::WindowsLeftOut { windows: 1, range } => write!(
                f,
                "1 window from {} to {} was left out: its counts may still change, or are incomplete",
                range.start(),
                range.end()
            ),
            Self::WindowsLeftOut { windows, range } => write!(
                f,
                "{windows} windows from {} to {} were left out: their counts may still change, or are incomplete",
                range.start(),
                range.end()
            ),
            Self::LongValue { label, bytes, most, reader } => write!(
                f,
                "a value of {label} has {bytes} bytes: {reader} accepts up to {most} by default, and drops series with \
                 longer ones"
            ),
            Self::LongName { label, most, reader } => write!(
                f,
                "the name of the label {label} has {} bytes: {reader} accepts up to {most} by default, and drops series \
                 with longer ones",
                label.len()
            ),
            Self::ManyLabels { labels, most, reader } => write!(
                f,
                "series have {labels} labels in {reader}, which accepts up to {most} by default, and drops series with more"
            ),
        }
    }
}

/// What a caller should know about an export.
#[derive(Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
#[serde(rename = "Note")]
struct Shown {
    /// The kind of the note.
    kind: NoteKind,
    /// A sentence for people.
    message: String,
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown { kind: self.kind(), message: self.message() }.serialize(serializer)
    }
}

#[cfg(feature = "surface")]
impl schemars::JsonSchema for Note {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Note".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Shown::json_schema(generator)
    }
}
