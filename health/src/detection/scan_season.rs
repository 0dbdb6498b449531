//! The terms of a regression on time and season.

use crate::detection::scan_options::ScanOptions;

/// Most columns of a regression.
pub(crate) const MOST: usize = 8;

/// One row of a regression: the constant, the season's waves, the trend. Unused columns are 0.
pub(crate) type Row = [f64; MOST];

/// Which terms a regression has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    period: f64,
    /// Waves: pairs of a cosine and a sine, the first with one cycle a season.
    waves: usize,
    /// The window at which the trend is 0, and how many windows later it is 1.
    trend: Option<(f64, f64)>,
}

impl Terms {
    /// Nothing but a constant.
    pub(crate) const CONSTANT: Self = Self {
        period: 1.0,
        waves: 0,
        trend: None,
    };

    /// The terms that a history of windows from `first` to `last` can teach.
    pub(crate) fn new(options: &ScanOptions, first: usize, last: usize) -> Self {
        let length = last.saturating_sub(first);
        let seasons = length / options.period.max(1);
        let waves = if seasons >= 2 { options.waves } else { 0 };
        let half = length as f64 / 2.0;
        Self {
            period: options.period.max(1) as f64,
            waves: waves
                .min(options.period.saturating_sub(1) / 2)
                .min((MOST - 2) / 2),
            trend: (seasons >= 3).then_some((first as f64 + half, half.max(1.0))),
        }
    }

    /// How many columns are used.
    pub(crate) fn columns(&self) -> usize {
        1 + 2 * self.waves + usize::from(self.trend.is_some())
    }

    /// The row of a window.
    pub(crate) fn row(&self, at: usize) -> Row {
        let mut row = [0.0; MOST];
        row[0] = 1.0;
        for wave in 1..=self.waves {
            let cycles = wave as f64 * at as f64 / self.period;
            let angle = 2.0 * std::f64::consts::PI * (cycles - cycles.floor());
            row[2 * wave - 1] = libm::cos(angle);
            row[2 * wave] = libm::sin(angle);
        }
        if let Some((centre, scale)) = self.trend {
            row[2 * self.waves + 1] = (at as f64 - centre) / scale;
        }
        row
    }
}
