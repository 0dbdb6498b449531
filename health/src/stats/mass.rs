//! Natural logarithms of the probabilities of single counts, by the saddle point form of Loader (2000). This form never
//! subtracts large logarithms that nearly cancel, so it stays precise for large counts and far from the mean.

use libm::{lgamma, log, log1p};

/// Replaces 0 as a divisor, so that quotients stay finite.
pub(crate) const LEAST: f64 = 1e-100;

/// The probability of an event, and of its absence. Both are positive, and the smaller one is exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    pub(crate) p: f64,
    pub(crate) q: f64,
}

impl Chance {
    /// Makes a chance from `p`, which is clamped to 0 to 1. NaN counts as 0.
    pub(crate) fn new(p: f64) -> Self {
        let p = if p.is_nan() { 0.0 } else { p.clamp(0.0, 1.0) };
        Self { p: p.max(LEAST), q: (1.0 - p).max(LEAST) }
    }
}

/// Returns ln P(X = k) of a Poisson count with a positive mean.
pub(crate) fn poisson(k: f64, mean: f64) -> f64 {
    if k <= 0.0 {
        return -mean;
    }
    -stirling_error(k) - deviance_of(k, mean, k - mean) - HALF_LN_TWO_PI - 0.5 * libm::log(k)
}

/// Returns ln P(X = k) of a negative binomial count with a positive mean and a variance of (1 + `excess`) times the mean.
pub(crate) fn negative_binomial(k: f64, mean: f64, excess: f64) -> f64 {
    let size = (mean / excess).max(LEAST * LEAST);
    if k <= 0.0 {
        return -size * libm::log1p(excess);
    }
    let total = size + k;
    let dispersion = 1.0 + excess;
    let difference = (k - mean) / dispersion;
    stirling_error(total)
        - stirling_error(size)
        - stirling_error(k)
        - deviance_of(size, total / dispersion, -difference)
        - deviance_of(k, (k * excess + mean) / dispersion, difference)
        - HALF_LN_TWO_PI
        + 0.5 * (libm::log(size / total) - libm::log(k))
}

/// Returns ln P(X = k) of a binomial count with `n` trials.
pub(crate) fn binomial(k: f64, n: f64, chance: Chance) -> f64 {
    let Chance { p, q } = chance;
    if k <= 0.0 {
        return n * if p < 0.5 { libm::log1p(-p) } else { libm::log(q) };
    }
    if k >= n {
        return n * if q < 0.5 { libm::log1p(-q) } else { libm::log(p) };
    }
    let difference = k - n * p;
    stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance_of(k, n * p, difference)
        - deviance_of(n - k, n * q, -difference)
        - HALF_LN_TWO_PI
        + 0.5 * (libm::log(n / (n - k)) - libm::log(k))
}

/// A binomial count whose probability is itself beta distributed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetaBinomial {
    pub(crate) n: f64,
    pub(crate) chance: Chance,
    /// The positive parameters `a` and `b` of the beta distribution, and their sum `size`.
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) size: f64,
}

impl BetaBinomial {
    /// Makes a distribution with (1 + `excess`) times the variance of a binomial count. `excess` is positive. A factor
    /// of `n` or more counts as just below `n`.
    pub(crate) fn new(n: f64, chance: Chance, excess: f64) -> Self {
        let size = ((n - 1.0 - excess) / excess).max(1e-6);
        let [a, b] = [size * chance.p, size * chance.q].map(|part| part.max(LEAST));
        Self { n, chance, a, b, size }
    }

    /// Returns P(X = k + 1) / P(X = k).
    pub(crate) fn ratio(&self, k: f64) -> f64 {
        (self.n - k) / (k + 1.0) * ((k + self.a) / ((self.n - k - 1.0).max(0.0) + self.b))
    }

    /// Returns ln P(X = k).
    pub(crate) fn ln_mass(&self, k: f64) -> f64 {
        if self.size * self.size < self.n { self.by_gamma(k) } else { self.by_deviance(k) }
    }

    /// Returns ln P(X = k) by ratios of gamma functions, which is precise where `size` is small.
    fn by_gamma(&self, k: f64) -> f64 {
        let (a, b, size) = (self.a, self.b, self.size);
        let beta = libm::lgamma(size) - libm::lgamma(a) - libm::lgamma(b);
        beta + ln_gamma_ratio(k, a) + ln_gamma_ratio(self.n - k, b) - ln_gamma_ratio(self.n, size)
    }

    /// Returns ln P(X = k) by Stirling errors and deviances, which is precise where `size` is large.
    fn by_deviance(&self, k: f64) -> f64 {
        let Self { n, chance, a, b, size } = *self;
        let (upper, lower, total) = (k + a, n - k + b, n + size);
        let difference = k - n * chance.p;
        let prior = stirling_error(size) - stirling_error(a) - stirling_error(b);
        let all = stirling_error(total)
            - stirling_error(upper)
            - stirling_error(lower)
            - deviance_of(upper, total * chance.p, difference)
            - deviance_of(lower, total * chance.q, -difference);
        binomial(k, n, chance) + prior - all
            + 0.5 * libm::log(a / upper * (b / lower) * (total / size))
    }
}

/// ½·ln 2π.
pub(crate) const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// Returns ln Γ(n + 1) minus Stirling's formula for it, for n > 0.
pub(crate) fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return lgamma(n + 1.0) - (n + 0.5) * log(n) + n - HALF_LN_TWO_PI;
    }
    let square = n * n;
    STIRLING.iter().fold(0.0, |sum, term| sum / square + term) / n
}

/// The coefficients of Stirling's series, the last one first. For 16 and more, the error is below 1e-16.
const STIRLING: [f64; 8] = [
    -3617.0 / 122_400.0,
    1.0 / 156.0,
    -691.0 / 360_360.0,
    1.0 / 1188.0,
    -1.0 / 1680.0,
    1.0 / 1260.0,
    -1.0 / 360.0,
    1.0 / 12.0,
];

/// Returns ln Γ(z + c) − ln Γ(z + 1) for z >= 0 and c > 0. The result keeps all digits if z is much larger than c.
pub(crate) fn ln_gamma_ratio(z: f64, c: f64) -> f64 {
    if z < 32.0 {
        return lgamma(z + c) - lgamma(z + 1.0);
    }
    let step = c - 1.0;
    let stirling = stirling_error(z + step) - stirling_error(z);
    stirling + step * (log(z) - 1.0) + (z + step + 0.5) * log1p(step / z)
}

/// Returns half of the Poisson deviance, x·ln(x/E) − (x − E): how much more probable the Poisson count x is with mean x
/// than with mean E (`expected`), as a natural logarithm.
///
/// At x = 0, the result is E. It is 0 only at x = E. An expectation of 0 counts as the smallest positive number, so that
/// the result is finite for every input. Negative numbers and NaN count as 0.
#[must_use]
pub fn deviance(x: f64, expected: f64) -> f64 {
    let (x, expected) = (amount(x), amount(expected).max(f64::MIN_POSITIVE));
    deviance_of(x, expected, x - expected).clamp(0.0, f64::MAX)
}

/// Like [`deviance`], for callers that know the difference x − E without rounding errors.
pub(crate) fn deviance_of(x: f64, expected: f64, difference: f64) -> f64 {
    if x <= 0.0 {
        return expected;
    }
    if difference.abs() < 0.1 * (x + expected) {
        return near(x, expected, difference);
    }
    x * libm::log(x / expected) - difference
}

/// Returns the deviance by the series of Loader (2000), which keeps all digits where x is close to E.
fn near(x: f64, expected: f64, difference: f64) -> f64 {
    let v = difference / (x + expected);
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    let square = v * v;
    for odd in (3..64).step_by(2) {
        term *= square;
        let next = sum + term / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Returns a number from 0 to [`LARGEST`]. NaN becomes 0.
pub(crate) fn amount(value: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    value.clamp(0.0, LARGEST)
}

/// A number that is larger than every count (below 2^64) and every mean of counts. Its square is finite.
const LARGEST: f64 = 1e30;
