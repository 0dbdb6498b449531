//! The windows that a level is learned from.

use std::borrow::Cow;
use std::ops::Range;

use super::stream::{Basis, Season, Stream};

/// The maximum number of neighbours on each side.
pub(crate) const MOST_NEIGHBOURS: usize = 100;

/// A window, or the sum of several, as floats. All fields are 0 for a window that nothing is learned from: an unknown
/// window, or a window of a rate whose whole is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prepared {
    /// How many windows are learned from.
    pub(crate) windows: f64,
    pub(crate) part: f64,
    /// For a volume, 1.
    pub(crate) whole: f64,
    /// The square of the part over the whole.
    pub(crate) square: f64,
}

impl Prepared {
    /// Takes the part and the whole of a window, or `None` if nothing is learned from it.
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

/// A summary of adjacent windows.
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
    /// The number of windows that are usually summarized together. `together` has a summary of this many windows for
    /// each first window.
    length: usize,
    together: Cow<'w, [Together]>,
}

impl Windows<'_> {
    /// All windows of a stream.
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
}

/// A source of windows.
pub(crate) trait Source {
    /// The summary of a range of windows.
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

/// The windows that a level is learned from, in rounds: one for each season.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) rounds: Vec<Round>,
    /// How many windows there are.
    pub(crate) windows: usize,
    /// What is expected at each offset from the slot, relative to what is expected at the slot.
    pub(crate) factors: Vec<f64>,
    /// Whether any factor differs from 1.
    pub(crate) has_factors: bool,
    /// The offset of the slot itself.
    pub(crate) centre: usize,
}

/// Adjacent windows around the slot, in one season.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// How many seasons ago.
    pub(crate) ago: f64,
    /// The first window, and how many there are.
    pub(crate) first: usize,
    pub(crate) length: usize,
    /// The offset of the first one.
    pub(crate) offset: usize,
    pub(crate) together: Together,
    /// The sums of their parts and wholes; later, the weighted sums.
    pub(crate) part: f64,
    pub(crate) whole: f64,
}

impl Sample {
    /// Takes the windows around the slot of `at` in each of the `most` seasons before it.
    pub(crate) fn fill(
        &mut self,
        from: &impl Source,
        at: usize,
        period: usize,
        most: usize,
        neighbours: usize,
    ) {
        self.rounds.clear();
        self.windows = 0;
        let neighbours = neighbours.min(at).min(MOST_NEIGHBOURS);
        self.centre = neighbours;
        self.has_factors = false;
        self.factors.clear();
        self.factors.resize(2 * neighbours + 1, 1.0);
        for ago in 1..=most {
            let Some(slot) = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back))
            else {
                break;
            };
            let first = slot.saturating_sub(neighbours);
            let length = slot.saturating_add(neighbours).min(at - 1) + 1 - first;
            let together = from.together(first..first + length);
            if together.all.teaches() {
                self.windows += together.all.windows as usize;
                self.rounds.push(Round {
                    ago: ago as f64,
                    first,
                    length,
                    offset: first + neighbours - slot,
                    together,
                    part: together.all.part,
                    whole: together.all.whole,
                });
            }
        }
    }

    /// Copies only the windows of the sample. Afterwards, its rounds refer to the copy.
    pub(crate) fn gather(&mut self, stream: &Stream<'_>) -> Vec<Prepared> {
        let mut windows = Vec::with_capacity(self.rounds.len() * self.factors.len());
        for round in &mut self.rounds {
            let first = windows.len();
            windows.extend(
                (round.first..round.first + round.length)
                    .map(|at| Prepared::new(stream.teaching_at(at))),
            );
            round.first = first;
        }
        windows
    }

    /// The mean whole of a window.
    pub(crate) fn mean_whole(&self) -> f64 {
        self.rounds.iter().map(|round| round.whole).sum::<f64>() / self.windows.max(1) as f64
    }
}

/// The minimum number of seasons, days or windows for a level.
const FEWEST: usize = 4;
/// How far the two fallbacks look back: one in days, the other in windows.
const DAYS: usize = 14;
const RECENT: usize = 12;

/// Fills the sample by the first rule that finds enough windows, and returns the basis of that rule.
pub(crate) fn choose(
    sample: &mut Sample,
    from: &impl Source,
    at: usize,
    season: &Season,
) -> Option<Basis> {
    let Season {
        period,
        neighbours,
        seasons,
        shorter,
    } = *season;
    let rules = [
        (Basis::Season, period, seasons, FEWEST, neighbours),
        (Basis::FewSeasons, period, seasons, 2, neighbours),
        (Basis::Days, shorter, DAYS, FEWEST, neighbours),
        (Basis::Recent, 1, RECENT, FEWEST, 0),
    ];
    rules
        .into_iter()
        .find_map(|(basis, period, most, fewest, neighbours)| {
            let fewest = fewest.min(most.max(1));
            if period == 0 || at / period < fewest {
                return None;
            }
            sample.fill(from, at, period, most, neighbours);
            (sample.rounds.len() >= fewest).then_some(basis)
        })
}
