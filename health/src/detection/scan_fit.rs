//! The options of a scan, and the regression that predicts the counts of a stream.

/// The options of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOptions {
    /// The number of windows in a season, such as 52 weeks in a year or 7 days in a week. 0 or 1 means no season.
    pub period: usize,
    /// The number of waves in a season, at most 3; the first wave has one cycle. Waves are used if the history has at
    /// least two seasons.
    pub waves: usize,
    /// How many earlier windows to learn from. If the history has three seasons or more, the regression includes a
    /// trend.
    pub history: usize,
    /// How many of the last windows the scan does not learn from, because they may belong to the incident.
    pub guard: usize,
    /// The probability below which the sum of 1, 2 or 3 windows is an alarm.
    pub limits: [f64; 3],
    /// Past windows that are less probable than this get less weight. The less probable a window is, the less weight it gets.
    pub incident: f64,
    /// There is no alarm if both the observed and the expected events are fewer than this.
    pub least: u64,
}

impl ScanOptions {
    /// Returns options for windows of a week with a yearly season, learned from the last five years. The sum of two weeks
    /// has the highest limit, since incidents seldom end with the week in which they begin. `make grade-detect` evaluates
    /// these options.
    #[must_use]
    pub const fn weeks() -> Self {
        Self {
            period: 52,
            waves: 1,
            history: 263,
            guard: 5,
            limits: [0.004, 0.013, 0.004],
            incident: 0.01,
            least: 5,
        }
    }
}

/// The maximum number of columns of a regression.
pub(crate) const MOST: usize = 8;

/// One row of a regression: the constant, the season's waves, the trend. Unused columns are 0.
pub(crate) type Row = [f64; MOST];

/// The terms of a regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    period: f64,
    /// The number of waves. Each is a cosine and a sine; the first wave has one cycle a season.
    waves: usize,
    /// The window at which the trend is 0, and how many windows later it is 1.
    trend: Option<(f64, f64)>,
}

impl Terms {
    /// Only a constant.
    pub(crate) const CONSTANT: Self = Self { period: 1.0, waves: 0, trend: None };

    /// Returns the terms that can be learned from the windows from `first` to `last`.
    pub(crate) fn new(options: &ScanOptions, first: usize, last: usize) -> Self {
        let length = last.saturating_sub(first);
        let seasons = length / options.period.max(1);
        let waves = if seasons >= 2 { options.waves } else { 0 };
        let half = length as f64 / 2.0;
        Self {
            period: options.period.max(1) as f64,
            waves: waves.min(options.period.saturating_sub(1) / 2).min((MOST - 2) / 2),
            trend: (seasons >= 3).then_some((first as f64 + half, half.max(1.0))),
        }
    }

    /// Returns the number of used columns.
    pub(crate) fn columns(&self) -> usize {
        1 + 2 * self.waves + usize::from(self.trend.is_some())
    }

    /// Returns the row of a window.
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

/// The maximum number of steps of Newton's method.
const STEPS: usize = 25;
/// The natural logarithm of a rate stays between these limits, so that no sum of squares overflows.
const LOGARITHMS: (f64, f64) = (-40.0, 45.0);

/// A window that the regression learns from.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) count: f64,
    /// The whole that a rate's count is a part of; 1 for volumes.
    pub(crate) whole: f64,
    /// 0 for a window that is left out.
    pub(crate) weight: f64,
    pub(crate) row: Row,
    /// The mean that the last regression predicts.
    pub(crate) mean: f64,
}

/// A fitted regression.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) terms: Terms,
    coefficients: Row,
    /// The covariance of the coefficients, for a dispersion of 1.
    covariance: [Row; MOST],
    /// Variance divided by mean, at least 1.
    pub(crate) dispersion: f64,
}

impl Fit {
    /// Fits a constant: the weighted rate, plus half an event so that it is not 0. Returns `None` if the wholes of all
    /// points are 0.
    pub(crate) fn constant(points: &mut [Point]) -> Option<Self> {
        let count = 0.5 + weighted(points, |point| point.count);
        let whole = weighted(points, |point| point.whole);
        if whole <= 0.0 {
            return None;
        }
        let mut fit = Self {
            terms: Terms::CONSTANT,
            coefficients: [0.0; MOST],
            covariance: [[0.0; MOST]; MOST],
            dispersion: 1.0,
        };
        fit.coefficients[0] = libm::log(count / whole).clamp(LOGARITHMS.0, LOGARITHMS.1);
        fit.covariance[0][0] = 1.0 / count;
        fit.place(points);
        Some(fit)
    }

    /// Fits the regression on `terms`, starting from this fit. Returns `None` if there are too few windows or it does not
    /// converge.
    pub(crate) fn regressed(&self, terms: Terms, points: &mut [Point]) -> Option<Self> {
        let mut fit = self.clone();
        fit.terms = terms;
        if weighted(points, |_| 1.0) <= terms.columns() as f64 {
            return None;
        }
        for _ in 0..STEPS {
            if fit.step(points)? < 1e-6 {
                fit.place(points);
                return Some(fit);
            }
        }
        None
    }

    /// Takes one step of Newton's method. Returns how far the coefficients moved.
    fn step(&mut self, points: &[Point]) -> Option<f64> {
        let columns = self.terms.columns();
        let mut information = [[0.0; MOST]; MOST];
        let mut gradient = [0.0; MOST];
        for point in points.iter().filter(|point| point.weight > 0.0) {
            let mean = point.whole * self.rate(&point.row);
            for i in 0..columns {
                gradient[i] += point.weight * point.row[i] * (point.count - mean);
                let weight = point.weight * mean * point.row[i];
                for (entry, value) in information[i].iter_mut().zip(&point.row).take(i + 1) {
                    *entry += weight * value;
                }
            }
        }
        self.covariance = inverse(&information, columns)?;
        let step = self.covariance.map(|row| product(&row, &gradient));
        let longest = step.iter().fold(0.0, |longest: f64, part| longest.max(part.abs()));
        if !longest.is_finite() {
            return None;
        }
        let share = (2.0 / longest).min(1.0);
        for (coefficient, part) in self.coefficients.iter_mut().zip(step) {
            *coefficient += part * share;
        }
        Some(longest)
    }

    /// Sets the predicted means of the points, and computes the dispersion.
    fn place(&mut self, points: &mut [Point]) {
        for point in points.iter_mut() {
            point.mean = point.whole * self.rate(&point.row);
        }
        let squares = weighted(points, |point| {
            (point.count - point.mean) * (point.count - point.mean)
                / point.mean.max(f64::MIN_POSITIVE)
        });
        let freedom = weighted(points, |_| 1.0) - self.terms.columns() as f64;
        self.dispersion = (squares / freedom.max(1.0)).clamp(1.0, 1e12);
    }

    /// Returns the expected count for a whole of 1.
    pub(crate) fn rate(&self, row: &Row) -> f64 {
        libm::exp(product(row, &self.coefficients).clamp(LOGARITHMS.0, LOGARITHMS.1))
    }

    /// Returns the variance that the error of the coefficients adds to a mean with this gradient.
    pub(crate) fn error(&self, gradient: &Row) -> f64 {
        let rows = self.covariance.map(|row| product(&row, gradient));
        (product(&rows, gradient) * self.dispersion).max(0.0)
    }
}

/// Returns the weighted sum of a value of the points.
fn weighted(points: &[Point], value: impl Fn(&Point) -> f64) -> f64 {
    let used = points.iter().filter(|point| point.weight > 0.0);
    used.map(|point| point.weight * value(point)).sum()
}

fn product(a: &Row, b: &Row) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the inverse of a symmetric positive definite matrix by Cholesky decomposition. It reads only the lower half of
/// the matrix.
fn inverse(matrix: &[Row; MOST], columns: usize) -> Option<[Row; MOST]> {
    let lower = cholesky(matrix, columns)?;
    let mut inverse = [[0.0; MOST]; MOST];
    for (column, solution) in inverse.iter_mut().enumerate().take(columns) {
        *solution = solved(&lower, columns, column);
    }
    Some(inverse)
}

/// Returns a column of the inverse.
fn solved(lower: &[Row; MOST], columns: usize, column: usize) -> Row {
    let mut x = [0.0; MOST];
    for i in 0..columns {
        let known: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
        x[i] = (f64::from(u8::from(i == column)) - known) / lower[i][i];
    }
    for i in (0..columns).rev() {
        let known: f64 = (i + 1..columns).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    x
}

fn cholesky(matrix: &[Row; MOST], columns: usize) -> Option<[Row; MOST]> {
    let mut lower = [[0.0; MOST]; MOST];
    for i in 0..columns {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = matrix[i][j] - known;
            if i != j {
                lower[i][j] = rest / lower[j][j];
            } else if rest > matrix[i][i] * 1e-10 {
                lower[i][i] = libm::sqrt(rest);
            } else {
                return None;
            }
        }
    }
    Some(lower)
}
