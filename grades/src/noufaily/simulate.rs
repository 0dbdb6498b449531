//! The scenarios of Noufaily et al. 2013: weekly counts with seasons, trend and outbreaks, whose true mean is known.

use crate::noufaily::random::Random;

/// Weeks of a series.
const WEEKS: usize = 624;
/// The first week that a detector sees.
pub(crate) const FIRST: usize = 312;
/// The first week that is graded. All later weeks are graded, too.
pub(crate) const GRADED: usize = 575;
/// Weeks of a year.
pub(crate) const YEAR: usize = 52;
const OUTBREAKS_IN_BASELINE: usize = 4;

/// The mean and the variance of a scenario's counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// The row of the paper's parameters, 1 to 7.
    pub(crate) row: usize,
    theta: f64,
    beta: f64,
    gamma: [f64; 2],
    phi: f64,
    /// Whether the mean has the row's trend.
    pub(crate) trend: bool,
    /// Whether the mean has the row's season.
    pub(crate) season: bool,
}

/// Row, θ, β, γ1, γ2, φ.
const ROWS: [(f64, f64, [f64; 2], f64); 7] = [
    (0.1, 0.0025, [0.6, 0.6], 1.5),
    (-2.0, 0.005, [0.1, 0.3], 2.0),
    (1.5, 0.003, [0.2, -0.4], 1.0),
    (0.5, 0.002, [0.5, 0.5], 5.0),
    (2.5, 0.001, [1.0, 0.1], 3.0),
    (3.75, 0.001, [0.1, -0.1], 1.1),
    (5.0, 0.0001, [0.05, 0.01], 1.2),
];

/// All 28: each row with and without trend and season.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let variants = [(false, false), (false, true), (true, false), (true, true)];
    let rows = ROWS.iter().enumerate();
    rows.flat_map(|(index, &(theta, beta, gamma, phi))| {
        variants.map(|(trend, season)| Scenario {
            row: index + 1,
            theta,
            beta,
            gamma,
            phi,
            trend,
            season,
        })
    })
    .collect()
}

/// A simulated series, from the first week of the baseline on.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The cases of each week, including the cases of outbreaks.
    pub(crate) counts: Vec<u64>,
    /// For each week, the cases of outbreaks in the baseline.
    pub(crate) earlier: Vec<u64>,
    /// For each week, the cases of the outbreak that a detector should find.
    pub(crate) outbreak: Vec<u64>,
}

impl Scenario {
    /// The expected count of a week. Weeks are numbered from 0.
    fn mean(&self, week: usize) -> f64 {
        let time = (week + 1) as f64;
        let angle = 2.0 * std::f64::consts::PI * time / YEAR as f64;
        let trend = if self.trend { self.beta * time } else { 0.0 };
        let season = if self.season {
            self.gamma[0] * libm::cos(angle) + self.gamma[1] * libm::sin(angle)
        } else {
            0.0
        };
        libm::exp(self.theta + trend + season)
    }

    /// Draws a series: counts, four outbreaks in the baseline, one in the weeks that are graded.
    pub(crate) fn draw(&self, random: &mut Random) -> Run {
        let counts =
            (0..WEEKS).map(|week| random.count(self.mean(week), self.phi)).collect::<Vec<_>>();
        let mut earlier = vec![0; WEEKS];
        for _ in 0..OUTBREAKS_IN_BASELINE {
            self.break_out(random, FIRST..GRADED, &mut earlier);
        }
        let mut outbreak = vec![0; WEEKS];
        self.break_out(random, GRADED..WEEKS, &mut outbreak);
        let total = (FIRST..WEEKS).map(|week| counts[week] + earlier[week] + outbreak[week]);
        Run {
            counts: total.collect(),
            earlier: earlier.split_off(FIRST),
            outbreak: outbreak.split_off(FIRST),
        }
    }

    /// Adds an outbreak that begins in one of `weeks`: Poisson(k·sd) cases, each delayed by a lognormal number of weeks, rounded down.
    fn break_out(&self, random: &mut Random, weeks: std::ops::Range<usize>, cases: &mut [u64]) {
        let start = weeks.start + random.below(weeks.len());
        let size = (1 + random.below(10)) as f64;
        let deviation = (self.phi * self.mean(start)).sqrt();
        for _ in 0..random.poisson(size * deviation) {
            let week = start + libm::exp(0.5 * random.normal()) as usize;
            if let Some(cases) = cases.get_mut(week) {
                *cases += 1;
            }
        }
    }
}
