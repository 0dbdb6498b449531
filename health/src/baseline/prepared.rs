//! A stream as floats, with what is needed of each window many times.

use std::borrow::Cow;
use std::ops::Range;

use crate::baseline::season::Season;
use crate::baseline::stream::Stream;

/// More neighbours than these are no neighbours.
pub(crate) const MOST_NEIGHBOURS: usize = 100;

/// A window, or windows in all, as floats. All 0 for a window that does not teach: it is unknown, or of a rate its whole is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prepared {
    /// How many windows that teach.
    pub(crate) windows: f64,
    pub(crate) part: f64,
    /// Of a volume, 1.
    pub(crate) whole: f64,
    /// The square of the part over the whole.
    pub(crate) square: f64,
}

impl Prepared {
    /// Of the part and the whole of a window that teaches, or of one that does not.
    pub(crate) fn new(known: Option<(u64, u64)>) -> Self {
        known.map_or_else(Self::default, |(part, whole)| {
            let (part, whole) = (part as f64, whole as f64);
            Self {
                windows: 1.0,
                part,
                whole,
                square: part * part / whole,
            }
        })
    }

    pub(crate) fn teaches(&self) -> bool {
        self.windows > 0.0
    }
}

/// Adjacent windows in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Together {
    /// Their sums.
    pub(crate) all: Prepared,
    /// The largest whole.
    pub(crate) widest: f64,
    /// The lowest and the highest part per whole.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl Together {
    pub(crate) fn of(windows: impl Iterator<Item = Prepared>) -> Self {
        let mut sums = Self {
            all: Prepared::default(),
            widest: 0.0,
            lowest: f64::INFINITY,
            highest: 0.0,
        };
        for window in windows.filter(Prepared::teaches) {
            sums.all.windows += window.windows;
            sums.all.part += window.part;
            sums.all.whole += window.whole;
            sums.all.square += window.square;
            let rate = window.part / window.whole;
            sums.widest = sums.widest.max(window.whole);
            sums.lowest = sums.lowest.min(rate);
            sums.highest = sums.highest.max(rate);
        }
        sums
    }
}

/// The windows of a stream.
pub(crate) struct Windows<'w> {
    pub(crate) each: Cow<'w, [Prepared]>,
    /// How many are often asked for together, and the sums of so many from each window on.
    length: usize,
    together: Cow<'w, [Together]>,
}

impl Windows<'_> {
    /// Of a whole stream.
    pub(crate) fn new(stream: &Stream<'_>, season: &Season) -> Self {
        let length = 2 * season.neighbours.min(MOST_NEIGHBOURS) + 1;
        let windows = 0..stream.counts.len();
        let each: Vec<Prepared> = windows
            .map(|at| Prepared::new(stream.teaching_at(at)))
            .collect();
        let together = each.windows(length);
        let together = together.map(|windows| Together::of(windows.iter().copied()));
        Self {
            length,
            together: together.collect(),
            each: each.into(),
        }
    }

    /// A part of them.
    pub(crate) fn part(&self, range: Range<usize>) -> Windows<'_> {
        let together = self.together.len();
        Windows {
            each: Cow::Borrowed(&self.each[range.clone()]),
            length: self.length,
            together: Cow::Borrowed(
                &self.together[range.start.min(together)..range.end.min(together)],
            ),
        }
    }
}

/// Where windows are taken from.
pub(crate) trait Source {
    /// Some windows in all.
    fn together(&self, windows: Range<usize>) -> Together;
}

impl Source for Windows<'_> {
    fn together(&self, windows: Range<usize>) -> Together {
        match windows.len() == self.length {
            true => self.together[windows.start],
            false => Together::of(self.each[windows].iter().copied()),
        }
    }
}

impl Source for Stream<'_> {
    fn together(&self, windows: Range<usize>) -> Together {
        Together::of(windows.map(|at| Prepared::new(self.teaching_at(at))))
    }
}
