//! The definition of a format: its properties, as data, and its encoder.

use tallyfold::sending::Delivery;
use tallyfold::{Code, Error, Result, Window};

use crate::context::Context;
use crate::sample::{Group, last_ms, last_second};

tallyfold::names! {
    /// Which windows are written.
    #[non_exhaustive]
    pub enum Windows {
        /// Windows that are fully covered and whose counts no longer change.
        Settled = "settled",
        /// All windows.
        All = "all",
    }
}

/// A format.
pub(crate) struct Form {
    /// The media type of what is written, for `Content-Type`.
    pub(crate) media_type: &'static str,
    /// The order in which samples are written.
    pub(crate) order: Order,
    /// Which numbers the format or its readers hold exactly.
    pub(crate) numbers: Numbers,
    /// The label limits that a system which reads the format has by default; `None` without such limits.
    pub(crate) limits: Option<Limits>,
    /// Whether a label with an empty value is left out: an event without a reason then has no label `reason`. Files have
    /// all columns.
    pub(crate) leaves_out_empty: bool,
    /// Which windows are written by default: all windows in files that are rewritten each time and for StatsD, but only
    /// settled windows for other systems, which store the samples.
    pub(crate) windows: Windows,
    /// Whether each piece is a separate message. Otherwise, all pieces form one text.
    pub(crate) is_messages: bool,
    /// The approximate maximum size of a piece in bytes, before compression.
    pub(crate) max_bytes: usize,
    /// How many bytes of a message the destination reads, unless the caller allows more for a piece; `None` without a limit.
    pub(crate) read_bytes: Option<usize>,
    /// Refuses what the format can't represent.
    pub(crate) check: fn(&Context) -> Result<()>,
    /// How pieces are delivered; `None` for formats that are not sent.
    pub(crate) delivery: Option<Delivery>,
    /// How running totals are delivered; `None` for formats that have none.
    pub(crate) totals: Option<Delivery>,
    /// Creates the encoder of a piece.
    pub(crate) encoder: for<'a> fn(&'a Context) -> Box<dyn Encoder + 'a>,
}

/// The maximum size of a datagram over IPv4 in bytes.
pub(crate) const MOST_BYTES_OF_DATAGRAM: usize = 65_507;

/// The label limits that a system which reads a format has by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The name of that system.
    pub(crate) reader: &'static str,
    /// The maximum length of a label value in bytes.
    pub(crate) value_bytes: usize,
    /// The maximum length of a label name in bytes.
    pub(crate) name_bytes: usize,
    /// The maximum number of labels of a series.
    pub(crate) labels: usize,
    /// How many of these labels the system adds itself, such as the label for the name of the metric.
    pub(crate) added: usize,
}

/// The limits of VictoriaMetrics since 1.108: its flags `-maxLabelValueLen`, `-maxLabelNameLen` and
/// `-maxLabelsPerTimeseries`. Prometheus has no limits by default.
pub(crate) const VICTORIA_METRICS: Limits =
    Limits { reader: "VictoriaMetrics", value_bytes: 4_096, name_bytes: 256, labels: 40, added: 1 };

/// Encodes one piece in a format. Each piece has a new encoder.
pub(crate) trait Encoder {
    /// Begins the piece. `is_first` means that no piece was written before.
    fn begin(&mut self, is_first: bool, out: &mut Vec<u8>) {
        let _ = (is_first, out);
    }

    /// Adds samples of a group. A group with many samples, or with windows far from each other, is added in several parts.
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>);

    /// Whether the labels of a group are written once instead of with each sample.
    fn has_labels_once(&self) -> bool {
        false
    }

    /// How many bytes of the piece are not in `out` yet, because only [`Encoder::end`] writes them.
    fn held(&self) -> usize {
        0
    }

    /// Ends the piece. `is_last` means that no piece follows.
    fn end(&mut self, is_last: bool, out: &mut Vec<u8>) {
        let _ = (is_last, out);
    }

    /// How many bytes [`Encoder::end`] adds, for encoders that write each group completely at once. Such a group can be
    /// removed again if the piece becomes too large, so pieces can use the whole size limit. `None` if the size of a
    /// group is only estimated.
    fn end_bytes(&self) -> Option<usize> {
        None
    }
}

impl Form {
    /// How pieces are delivered.
    pub(crate) fn delivery(&'static self) -> Result<&'static Delivery> {
        self.delivery.as_ref().ok_or_else(|| {
            let message = "this is a format of files and scrapes, which is not sent";
            Error::argument("format", Code::InvalidArgument, message)
        })
    }

    /// How running totals are delivered.
    pub(crate) fn totals(&'static self) -> Result<&'static Delivery> {
        self.totals.as_ref().ok_or_else(|| {
            let message = "this format has no running totals; want \"otlp\" or \"otlp-json\"";
            Error::new(Code::UnsupportedByFormat, message)
        })
    }
}

/// In which order samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Window after window, and in each window group after group.
    Windows,
    /// Group after group, and for each group window after window.
    Groups,
    /// All of the first count, then all of the second one, then all of the third; for each count as in `Groups`.
    Counts,
}

/// Which numbers are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// All counts.
    All,
    /// Signed 64-bit integers. Larger counts are refused.
    Signed,
    /// 64-bit floats. Counts above 2^53 are rounded, or refused if the caller wants exact numbers.
    Floats,
}

impl Numbers {
    /// The largest number that is exact.
    pub(crate) const fn most(self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::Signed => i64::MAX as u64,
            Self::Floats => 1 << 53,
        }
    }
}

/// For formats with timestamps in milliseconds: refuses a window in which no millisecond begins, because two such windows
/// could have the same timestamp.
pub(crate) fn carries_milliseconds(context: &Context) -> Result<()> {
    carries(context, "milliseconds", |window| {
        i128::from(last_ms(window.end())) * 1_000_000 >= window.start().unix_ns()
    })
}

/// For formats with timestamps in whole seconds after 1970: refuses a window in which no such second begins.
pub(crate) fn carries_whole_seconds(context: &Context) -> Result<()> {
    carries(context, "whole seconds after 1970", |window| {
        let second = last_second(window.end());
        second > 0 && i128::from(second) * 1_000_000_000 >= window.start().unix_ns()
    })
}

fn carries(context: &Context, times: &str, has_one: fn(Window) -> bool) -> Result<()> {
    match context.windows.iter().find(|window| !has_one(**window)) {
        None => Ok(()),
        Some(window) => {
            let message = format!(
                "the times of this format are {times}, and none begins in the window {window:?}"
            );
            Err(Error::new(Code::UnsupportedByFormat, message))
        }
    }
}
