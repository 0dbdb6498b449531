//! A Rust version of R's `farringtonFlexible` with the settings of `r/farrington.R`. It does not need R, and takes
//! minutes for hundreds of runs, for which R takes hours. A test compares its alarms with R's own alarms.

use crate::noufaily::simulate::{FIRST, GRADED, YEAR};
use tallyfold_health::negative_binomial;

/// Seasonal levels, and the column of the trend after them.
const LEVELS: usize = 10;
const COLUMNS: usize = LEVELS + 1;
const STEPS: usize = 25;
const YEARS: usize = 5;
const HALF_WIDTH: usize = 3;
const LAST_WEEKS: usize = 26;

/// The alarms of the graded weeks.
pub(crate) fn alarms(counts: &[u64]) -> Vec<bool> {
    let weeks = GRADED - FIRST..counts.len();
    weeks.map(|week| is_alarm(counts, week)).collect()
}

/// Whether a week's count is above the 0.99 quantile, and this week and the three before it have at least five cases.
fn is_alarm(counts: &[u64], week: usize) -> bool {
    let weeks = baseline(counts, week);
    let most = weeks.iter().fold(0.0, |most: f64, week| most.max(week.count));
    // Leaves out a trend that leads to an expected count above all counts of the baseline.
    let fit = reweighted(&weeks, true)
        .filter(|fit| !fit.has_trend || fit.expected() <= most)
        .or_else(|| reweighted(&weeks, false));
    let Some(fit) = fit else {
        return false;
    };
    let cases = counts[week - 3..=week].iter().sum::<u64>();
    let tails = negative_binomial(counts[week], fit.expected(), fit.dispersion);
    counts[week] > 0 && cases >= 5 && tails.high <= libm::log(0.01)
}

/// A week of the baseline.
struct Week {
    count: f64,
    level: usize,
    /// Weeks from the one that is judged, in hundreds.
    time: f64,
}

/// The baseline: the last five years without the last 26 weeks. The last level has the same week of each year, with three
/// weeks on each side. Each other level has five weeks.
fn baseline(counts: &[u64], week: usize) -> Vec<Week> {
    let first = week - YEARS * YEAR;
    let of_baseline = |at: usize| {
        let after = (at + YEAR - first) % YEAR;
        let is_near = after <= HALF_WIDTH || after >= YEAR - HALF_WIDTH;
        Week {
            count: counts[at] as f64,
            level: if is_near { LEVELS - 1 } else { (after - HALF_WIDTH - 1) / 5 },
            time: (at as f64 - week as f64) / 100.0,
        }
    };
    (first - HALF_WIDTH..week - LAST_WEEKS).map(of_baseline).collect()
}

type Matrix = [[f64; COLUMNS]; COLUMNS];

struct Fit {
    has_trend: bool,
    coefficients: [f64; COLUMNS],
    covariance: Matrix,
    means: Vec<f64>,
    dispersion: f64,
}

impl Fit {
    /// The mean of the week that is judged.
    fn expected(&self) -> f64 {
        libm::exp(self.coefficients[LEVELS - 1])
    }

    fn columns(&self) -> usize {
        LEVELS + usize::from(self.has_trend)
    }

    /// The leverage of a week in an unweighted regression.
    fn leverage(&self, week: &Week, mean: f64) -> f64 {
        let (level, last) = (week.level, LEVELS);
        let cross = 2.0 * week.time * self.covariance[level][last];
        let trend = week.time * week.time * self.covariance[last][last];
        mean * (self.covariance[level][level] + cross + trend)
    }
}

/// The second regression: weeks with a large Anscombe residual weigh less. A trend that does not converge is left out.
fn reweighted(weeks: &[Week], has_trend: bool) -> Option<Fit> {
    let equal = vec![1.0; weeks.len()];
    let fit = regression(weeks, &equal, has_trend);
    let fit = fit.or_else(|| regression(weeks, &equal, false))?;
    let residual = |(week, mean): (&Week, &f64)| {
        let root = libm::pow(week.count, 2.0 / 3.0) * libm::pow(*mean, -1.0 / 6.0);
        let variance = fit.dispersion * (1.0 - fit.leverage(week, *mean));
        1.5 * (root - mean.sqrt()) / variance.sqrt()
    };
    let residuals = weeks.iter().zip(&fit.means).map(residual);
    let weight = |residual: f64| {
        if residual > 2.58 { 1.0 / (residual * residual) } else { 1.0 }
    };
    let weights = residuals.map(weight).collect::<Vec<f64>>();
    let share = weeks.len() as f64 / weights.iter().sum::<f64>();
    let weights = weights.iter().map(|weight| weight * share).collect::<Vec<_>>();
    regression(weeks, &weights, fit.has_trend)
}

/// R's `glm` of the family quasipoisson, by iteratively reweighted least squares. Returns `None` if it does not converge,
/// or if it has no unique solution.
fn regression(weeks: &[Week], weights: &[f64], has_trend: bool) -> Option<Fit> {
    let mut fit = Fit {
        has_trend,
        coefficients: [0.0; COLUMNS],
        covariance: [[0.0; COLUMNS]; COLUMNS],
        means: weeks.iter().map(|week| week.count + 0.1).collect(),
        dispersion: 1.0,
    };
    let mut last = deviance(weeks, weights, &fit.means);
    for _ in 0..STEPS {
        step(&mut fit, weeks, weights)?;
        let deviance = deviance(weeks, weights, &fit.means);
        if (deviance - last).abs() < 1e-8 * (deviance.abs() + 0.1) {
            let freedom = (weeks.len() - fit.columns()) as f64;
            fit.dispersion = (pearson(weeks, weights, &fit.means) / freedom).max(1.0);
            return Some(fit);
        }
        last = deviance;
    }
    None
}

fn step(fit: &mut Fit, weeks: &[Week], weights: &[f64]) -> Option<()> {
    let mut information = [[0.0; COLUMNS]; COLUMNS];
    let mut gradient = [0.0; COLUMNS];
    for ((week, weight), mean) in weeks.iter().zip(weights).zip(&fit.means) {
        let working = libm::log(*mean) + (week.count - mean) / mean;
        let weight = weight * mean;
        for (row, x) in [(week.level, 1.0), (LEVELS, week.time)] {
            gradient[row] += weight * x * working;
            information[row][row] += weight * x * x;
        }
        information[LEVELS][week.level] += weight * week.time;
    }
    let columns = fit.columns();
    fit.covariance = inverse(&information, columns)?;
    fit.coefficients =
        fit.covariance.map(|row| row.iter().zip(&gradient).map(|(a, b)| a * b).sum());
    let mean = |week: &Week| {
        libm::exp(fit.coefficients[week.level] + fit.coefficients[LEVELS] * week.time)
    };
    fit.means = weeks.iter().map(mean).collect();
    Some(())
}

/// The inverse of the information: a diagonal, bordered by the row of the trend.
fn inverse(information: &Matrix, columns: usize) -> Option<Matrix> {
    let mut inverse = [[0.0; COLUMNS]; COLUMNS];
    let border = information[LEVELS];
    let mut rest = border[LEVELS];
    for level in 0..LEVELS {
        let own = information[level][level];
        if own <= 0.0 || !own.is_finite() {
            return None;
        }
        inverse[level][level] = 1.0 / own;
        rest -= border[level] * border[level] / own;
    }
    if columns == LEVELS {
        return Some(inverse);
    }
    if rest <= 0.0 {
        return None;
    }
    let slopes =
        std::array::from_fn::<f64, LEVELS, _>(|level| border[level] / information[level][level]);
    for (row, a) in slopes.iter().enumerate() {
        for (column, b) in slopes.iter().enumerate() {
            inverse[row][column] += a * b / rest;
        }
        inverse[row][LEVELS] = -a / rest;
        inverse[LEVELS][row] = -a / rest;
    }
    inverse[LEVELS][LEVELS] = 1.0 / rest;
    Some(inverse)
}

fn deviance(weeks: &[Week], weights: &[f64], means: &[f64]) -> f64 {
    let part = |(week, mean): (&Week, &f64)| {
        let log = if week.count > 0.0 { week.count * libm::log(week.count / mean) } else { 0.0 };
        2.0 * (log - (week.count - mean))
    };
    let parts = weeks.iter().zip(means).map(part);
    parts.zip(weights).map(|(part, weight)| part * weight).sum()
}

fn pearson(weeks: &[Week], weights: &[f64], means: &[f64]) -> f64 {
    let square = |(week, mean): (&Week, &f64)| (week.count - mean) * (week.count - mean) / mean;
    let squares = weeks.iter().zip(means).map(square);
    squares.zip(weights).map(|(square, weight)| square * weight).sum()
}
