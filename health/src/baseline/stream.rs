//! The counts of one group, window by window; how they repeat; and what is expected of a window.

/// Counts in adjacent windows of equal length, oldest first. For a rate, `counts` are the parts, and `wholes` are what
/// they are parts of.
///
/// If another slice is shorter than `counts`, the windows beyond its end are unknown.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// The events of each window.
    pub counts: &'a [u64],
    /// For a rate, what each count is a part of.
    pub wholes: Option<&'a [u64]>,
    /// Whether each window's count is final. This is false for gaps and for provisional windows, and nothing is learned
    /// from them.
    pub known: &'a [bool],
}

impl Stream<'_> {
    /// The part and the whole (1 for volumes) of a known window.
    pub(crate) fn known_at(&self, at: usize) -> Option<(u64, u64)> {
        if !*self.known.get(at)? {
            return None;
        }
        let whole = match self.wholes {
            Some(wholes) => *wholes.get(at)?,
            None => 1,
        };
        Some((*self.counts.get(at)?, whole))
    }

    /// A known window whose whole is not 0.
    pub(crate) fn teaching_at(&self, at: usize) -> Option<(u64, u64)> {
        self.known_at(at).filter(|(_, whole)| *whole > 0)
    }
}

/// Which earlier windows are comparable to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Season {
    /// Windows in a season: 672 of 15 minutes are a week, 52 weeks are a year.
    pub period: usize,
    /// How many windows on each side of the same slot are comparable, too.
    pub neighbours: usize,
    /// How many seasons back to look.
    pub seasons: usize,
    /// Windows in a shorter season, such as a day of a week, which is used while there are not enough seasons. 0 means
    /// none.
    pub shorter: usize,
}

impl Season {
    /// A week of days with `per_day` windows each: the same slot of the week with one neighbour on each side, in the last six weeks.
    #[must_use]
    pub const fn weekly(per_day: usize) -> Self {
        Self {
            period: per_day * 7,
            neighbours: 1,
            seasons: 6,
            shorter: per_day,
        }
    }
}

tallyfold::names! {
    /// The windows that a level was learned from.
    #[non_exhaustive]
    pub enum Basis {
        /// The same slot of the seasons before, with its neighbours.
        Season = "season",
        /// The same slot of two or three seasons before, with its neighbours: there are not enough seasons yet.
        FewSeasons = "few_seasons",
        /// The same slot of the days before, with its neighbours: there are not two seasons yet.
        Days = "days",
        /// The windows just before: there are not enough days yet.
        Recent = "recent",
    }
}

/// What is expected of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The expected count; for a rate, the expected share (0 to 1).
    pub expected: f64,
    /// The variance divided by the variance of a Poisson count (for a rate: of a binomial count); at least 1. It
    /// includes the uncertainty of the expectation itself.
    pub dispersion: f64,
    /// The windows that it was learned from.
    pub basis: Basis,
    /// How many windows it was learned from.
    pub used: usize,
}
