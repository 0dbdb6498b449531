//! How counts repeat.

/// Which windows before a window are like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Season {
    /// Windows in a season: 672 of 15 minutes are a week, 52 weeks are a year.
    pub period: usize,
    /// How many windows on each side of the same slot are like it too.
    pub neighbours: usize,
    /// How many seasons back to look.
    pub seasons: usize,
    /// Windows in a shorter season, a day of a week, which is used while there are not enough seasons. 0: there is none.
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
