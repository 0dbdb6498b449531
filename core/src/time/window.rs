//! Half-open time windows, and what a set of them covers.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::timestamp::Timestamp;

/// A half-open time window `[start, end)` in UTC.
///
/// It is an assumption that the service uses half-open windows: its reference does not say whether
/// the edges belong to the window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Window {
    /// The start, which is part of it, as ISO 8601 that ends in `Z`.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    start: Timestamp,
    /// The end, which is not part of it, as ISO 8601 that ends in `Z`.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    end: Timestamp,
}

impl Window {
    /// The window between two timestamps.
    ///
    /// # Errors
    /// `invalid_window` unless `start` is before `end`.
    pub fn new(start: Timestamp, end: Timestamp) -> Result<Self> {
        if start < end {
            return Ok(Self { start, end });
        }
        let message = format!("start must be before end, and {start} is not before {end}");
        Err(Error::argument("start", Code::InvalidWindow, message))
    }

    /// Parses both edges as [`Timestamp::parse`] does.
    ///
    /// # Errors
    /// `invalid_timestamp` with the argument's name, and `invalid_window`.
    pub fn parse(start: &str, end: &str) -> Result<Self> {
        let start = Timestamp::parse(start).map_err(|error| error.with_argument("start"))?;
        let end = Timestamp::parse(end).map_err(|error| error.with_argument("end"))?;
        Self::new(start, end)
    }

    /// The start, which is part of it.
    #[must_use]
    pub fn start(self) -> Timestamp {
        self.start
    }

    /// The end, which is not part of it.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.end
    }

    /// How many milliseconds it lasts, without a fraction.
    #[must_use]
    pub fn length_ms(self) -> u64 {
        self.end.unix_ms().abs_diff(self.start.unix_ms())
    }

    /// The fewest windows that cover the same time: adjacent and overlapping windows become one.
    ///
    /// ```
    /// # use tallyfold::Window;
    /// let [one, two] = [("00", "01"), ("01", "02")].map(|(start, end)| {
    ///     Window::parse(&format!("2026-01-01T{start}:00:00Z"), &format!("2026-01-01T{end}:00:00Z"))
    /// });
    /// let (one, two) = (one?, two?);
    /// assert_eq!(Window::joined(vec![two, one]), [Window::new(one.start(), two.end())?]);
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn joined(mut windows: Vec<Self>) -> Vec<Self> {
        windows.sort_unstable_by_key(|window| window.start);
        join_adjacent(&mut windows.into_iter())
    }

    /// The parts of the window that other windows do not cover. The other windows must be sorted, and must not overlap.
    #[must_use]
    pub fn uncovered(self, covered: impl IntoIterator<Item = Self>) -> Vec<Self> {
        uncovered(self, &mut covered.into_iter())
    }

    /// Whether the two windows have a timestamp in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether all of `other` lies inside.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl Parameter for Window {
    const KIND: Kind = Kind::Window;

    fn from_value(value: Value) -> Result<Self> {
        let edges = <Vec<String>>::from_value(value)?;
        match &edges[..] {
            [start, end] => Self::parse(start, end),
            _ => Err(Error::new(Code::InvalidArgument, "want two edges")),
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Edges {
            start: Timestamp,
            end: Timestamp,
        }
        let Edges { start, end } = Edges::deserialize(deserializer)?;
        Self::new(start, end).map_err(|error| de::Error::custom(error.message()))
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// Covers the time of sorted windows with as few windows as possible. Like the next function, this
/// one is compiled once for all kinds of iterators.
pub(crate) fn join_adjacent(sorted: &mut dyn Iterator<Item = Window>) -> Vec<Window> {
    let mut joined: Vec<Window> = Vec::new();
    for window in sorted {
        match joined.last_mut() {
            Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
            _ => joined.push(window),
        }
    }
    joined
}

/// The parts of a window that are not covered by the given windows, which must be sorted and must
/// not overlap.
pub(crate) fn uncovered(window: Window, covered: &mut dyn Iterator<Item = Window>) -> Vec<Window> {
    let mut gaps = Vec::new();
    let mut start = window.start;
    for covered in covered {
        let end = covered.start.min(window.end);
        gaps.extend((start < end).then_some(Window { start, end }));
        start = start.max(covered.end);
    }
    let end = window.end;
    gaps.extend((start < end).then_some(Window { start, end }));
    gaps
}

/// The positions of the windows that lie in a range. The windows are sorted and do not overlap.
///
/// # Errors
/// `unaligned_window` for a window that lies in it only in part, because its counts can't be split, and `invalid_window`
/// if none lies in it.
pub(crate) fn inside(
    range: Window,
    windows: &mut dyn Iterator<Item = Window>,
) -> Result<Range<usize>> {
    let mut kept = None;
    for (at, window) in windows.enumerate() {
        if range.contains(window) {
            kept = Some(kept.map_or(at, |first: Range<usize>| first.start)..at + 1);
        } else if range.overlaps(window) {
            let message = format!(
                "{window:?} reaches over the end of {range:?}, and counts can't be cut; want whole windows"
            );
            let edge = if window.start < range.start { "start" } else { "end" };
            return Err(Error::argument(edge, Code::UnalignedWindow, message));
        }
    }
    kept.ok_or_else(|| {
        let message = format!("no window is in {range:?}");
        Error::argument("start", Code::InvalidWindow, message)
    })
}

/// Windows as text, one after the other.
pub(crate) fn spans(windows: &[Window]) -> String {
    let spans: Vec<String> = windows.iter().map(|span| format!("{span:?}")).collect();
    spans.join(", ")
}
