//! What a format is: what is known of it, as data, and what writes it.

use tallyfold::sending::Delivery;
use tallyfold::{Code, Error, Result, Window};

use crate::context::Context;
use crate::sample::{Group, last_ms, last_second};

tallyfold::names! {
    /// Which windows are written.
    #[non_exhaustive]
    pub enum Windows {
        /// Those that are covered whole and whose counts no longer change.
        Settled = "settled",
        /// All of them.
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
    /// What a system that reads the format accepts of labels by default; `None` without such a limit.
    pub(crate) limits: Option<Limits>,
    /// Whether a value that is empty is left out: an event without a reason has no label `reason`. Files have all columns.
    pub(crate) leaves_out_empty: bool,
    /// Which windows are written, unless the caller says otherwise: all of them in files that are made anew, not where
    /// samples stay.
    pub(crate) windows: Windows,
    /// Whether each piece is a message of its own; otherwise all pieces are one text.
    pub(crate) is_messages: bool,
    /// About how many bytes a piece has at most, before it is compressed.
    pub(crate) max_bytes: usize,
    /// How many bytes of a message its receiver reads, unless the caller allows more for a piece; `None` without a limit.
    pub(crate) read_bytes: Option<usize>,
    /// Refuses what the format can't carry.
    pub(crate) check: fn(&Context) -> Result<()>,
    /// How pieces are delivered; `None` for formats that are not sent.
    pub(crate) delivery: Option<Delivery>,
    /// How running totals are delivered; `None` for formats that have none.
    pub(crate) totals: Option<Delivery>,
    /// Makes the encoder of a piece.
    pub(crate) encoder: for<'a> fn(&'a Context) -> Box<dyn Encoder + 'a>,
}

/// The most bytes of a datagram over IPv4.
pub(crate) const MOST_BYTES_OF_DATAGRAM: usize = 65_507;

/// What a system that reads a format accepts of labels by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The name of that system.
    pub(crate) reader: &'static str,
    /// How many bytes a value has at most.
    pub(crate) value_bytes: usize,
    /// How many bytes a name has at most.
    pub(crate) name_bytes: usize,
    /// How many labels a series has at most.
    pub(crate) labels: usize,
    /// How many of them the system makes itself, such as one for the name of the metric.
    pub(crate) added: usize,
}

/// The flags `-maxLabelValueLen`, `-maxLabelNameLen` and `-maxLabelsPerTimeseries` of VictoriaMetrics since 1.108. Prometheus
/// has no limits by default.
pub(crate) const VICTORIA_METRICS: Limits = Limits {
    reader: "VictoriaMetrics",
    value_bytes: 4_096,
    name_bytes: 256,
    labels: 40,
    added: 1,
};

/// Writes one piece in a format. A new one is made for each piece.
pub(crate) trait Encoder {
    /// Begins the piece. `is_first` means that no piece was written before.
    fn begin(&mut self, is_first: bool, out: &mut Vec<u8>) {
        let _ = (is_first, out);
    }

    /// Adds the samples of a group. A group with many samples, or windows far from each other, is added more than once.
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>);

    /// Whether the labels of a group are written once, and not with each of its samples.
    fn has_labels_once(&self) -> bool {
        false
    }

    /// How many bytes of the piece are not in `out` yet: those that only the end writes.
    fn held(&self) -> usize {
        0
    }

    /// Ends the piece. `is_last` means that no piece follows.
    fn end(&mut self, is_last: bool, out: &mut Vec<u8>) {
        let _ = (is_last, out);
    }

    /// How many bytes `end` adds, if a group is written whole at once, so that it can be cut off again if the piece
    /// becomes too large. Pieces are then as large as they may be. `None` if pieces are cut by an estimate.
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
    /// 64-bit floats. Larger counts than 2^53 are rounded, or refused.
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

/// For formats whose times are milliseconds: refuses windows in which none begins, because two of them could have the same
/// time.
pub(crate) fn carries_milliseconds(context: &Context) -> Result<()> {
    carries(context, "milliseconds", |window| {
        i128::from(last_ms(window.end())) * 1_000_000 >= window.start().unix_ns()
    })
}

/// For formats whose times are whole seconds after 1970: the same for those.
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
