//! The distributions of counts, with the functions that are needed to compute their tails.

use super::mass::{self, BetaBinomial, Chance, LEAST};

/// A distribution of counts from 0 to `end`.
pub(crate) trait Distribution {
    fn mean(&self) -> f64;
    /// Returns the largest count, which may be infinite.
    fn end(&self) -> f64;
    /// Returns ln P(X = k), also for `k` between whole numbers.
    fn ln_mass(&self, k: f64) -> f64;
    /// Returns P(X = k + 1) / P(X = k).
    fn ratio(&self, k: f64) -> f64;
    /// Returns P(X <= k) / P(X = k), if there is a fast way to compute it. `k` is at most about the mean.
    fn low(&self, _k: f64) -> Option<f64> {
        None
    }
    /// Returns P(X >= k) / P(X = k), if there is a fast way to compute it. `k` is at least about the mean.
    fn high(&self, _k: f64) -> Option<f64> {
        None
    }
}

pub(crate) struct Poisson {
    pub(crate) mean: f64,
}

impl Distribution for Poisson {
    fn mean(&self) -> f64 {
        self.mean
    }

    fn end(&self) -> f64 {
        f64::INFINITY
    }

    fn ln_mass(&self, k: f64) -> f64 {
        mass::poisson(k, self.mean)
    }

    fn ratio(&self, k: f64) -> f64 {
        self.mean / (k + 1.0)
    }

    fn low(&self, k: f64) -> Option<f64> {
        fraction(&GammaUpper { b: k + 1.0, mean: self.mean }).map(|value| self.mean * value)
    }

    fn high(&self, k: f64) -> Option<f64> {
        fraction(&GammaLower { a: k, mean: self.mean }).map(|value| k * value)
    }
}

pub(crate) struct NegativeBinomial {
    pub(crate) mean: f64,
    /// The variance is (1 + `excess`) times the mean.
    pub(crate) excess: f64,
}

impl NegativeBinomial {
    fn dispersion(&self) -> f64 {
        1.0 + self.excess
    }

    /// Returns (k + 1)·P(X = k + 1) / P(X = k).
    fn next(&self, k: f64) -> f64 {
        (k * self.excess + self.mean) / self.dispersion()
    }

    fn size(&self) -> f64 {
        (self.mean / self.excess).max(LEAST * LEAST)
    }
}

impl Distribution for NegativeBinomial {
    fn mean(&self) -> f64 {
        self.mean
    }

    fn end(&self) -> f64 {
        f64::INFINITY
    }

    fn ln_mass(&self, k: f64) -> f64 {
        mass::negative_binomial(k, self.mean, self.excess)
    }

    fn ratio(&self, k: f64) -> f64 {
        self.next(k) / (k + 1.0)
    }

    fn low(&self, k: f64) -> Option<f64> {
        let dispersion = self.dispersion();
        let beta = Beta {
            a: self.size(),
            b: k + 1.0,
            x: 1.0 / dispersion,
            y: self.excess / dispersion,
            lambda: (self.mean - k - 1.0) / dispersion,
        };
        fraction(&beta).map(|value| self.next(k) * value)
    }

    fn high(&self, k: f64) -> Option<f64> {
        let dispersion = self.dispersion();
        let beta = Beta {
            a: k,
            b: self.size(),
            x: self.excess / dispersion,
            y: 1.0 / dispersion,
            lambda: (k - self.mean) / dispersion,
        };
        fraction(&beta).map(|value| k * value)
    }
}

pub(crate) struct Binomial {
    pub(crate) n: f64,
    pub(crate) chance: Chance,
}

impl Distribution for Binomial {
    fn mean(&self) -> f64 {
        self.n * self.chance.p
    }

    fn end(&self) -> f64 {
        self.n
    }

    fn ln_mass(&self, k: f64) -> f64 {
        mass::binomial(k, self.n, self.chance)
    }

    fn ratio(&self, k: f64) -> f64 {
        (self.n - k) / (k + 1.0) * (self.chance.p / self.chance.q)
    }

    fn low(&self, k: f64) -> Option<f64> {
        let Chance { p, q } = self.chance;
        let beta =
            Beta { a: self.n - k, b: k + 1.0, x: q, y: p, lambda: (self.n + 1.0) * p - k - 1.0 };
        fraction(&beta).map(|value| (self.n - k) * p * value)
    }

    fn high(&self, k: f64) -> Option<f64> {
        let Chance { p, q } = self.chance;
        let beta = Beta { a: k, b: self.n - k + 1.0, x: p, y: q, lambda: k - (self.n + 1.0) * p };
        fraction(&beta).map(|value| k * q * value)
    }
}

impl Distribution for BetaBinomial {
    fn mean(&self) -> f64 {
        self.n * self.chance.p
    }

    fn end(&self) -> f64 {
        self.n
    }

    fn ln_mass(&self, k: f64) -> f64 {
        self.ln_mass(k)
    }

    fn ratio(&self, k: f64) -> f64 {
        self.ratio(k)
    }
}

/// The terms of the continued fraction 1/(β0 + α1/(β1 + α2/(β2 + …))).
pub(crate) trait Fraction {
    /// Returns α and β at `m`. At 0, only β is used.
    fn terms(&self, m: f64) -> (f64, f64);
}

/// The incomplete beta function I_x(a, b) divided by x^a·y^b/B(a, b), by the method of DiDonato and Morris (1992).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beta {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// a − (a + b)·x, which the caller computes without losing digits. The fraction converges well if `lambda` is about 0
    /// or more.
    pub(crate) lambda: f64,
}

impl Fraction for Beta {
    fn terms(&self, m: f64) -> (f64, f64) {
        let Self { a, b, x, y, lambda } = *self;
        let below = a + 2.0 * m - 1.0;
        let common = m * ((b - m) * x / below);
        let alpha = common * x * ((a + m - 1.0) * ((a + b + m - 1.0) / below));
        let beta = m + common + (a + m) * ((lambda + 1.0 + m * (1.0 + y)) / (below + 2.0));
        (alpha, if m == 0.0 { a * ((lambda + 1.0) / (a + 1.0)) } else { beta })
    }
}

/// The limit of [`Beta`] as b grows while b·x stays constant: the lower incomplete gamma function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GammaLower {
    pub(crate) a: f64,
    pub(crate) mean: f64,
}

impl Fraction for GammaLower {
    fn terms(&self, m: f64) -> (f64, f64) {
        let Self { a, mean } = *self;
        let below = a + 2.0 * m - 1.0;
        let common = if m == 0.0 { 0.0 } else { m * mean / below };
        let alpha = common * mean * ((a + m - 1.0) / below);
        (alpha, m + common + (a + m) * ((a - mean + 1.0 + 2.0 * m) / (below + 2.0)))
    }
}

/// The limit of [`Beta`] as a grows while a·y stays constant: the upper incomplete gamma function of `b`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GammaUpper {
    pub(crate) b: f64,
    pub(crate) mean: f64,
}

impl Fraction for GammaUpper {
    fn terms(&self, m: f64) -> (f64, f64) {
        (m * (self.b - m), self.mean - self.b + 1.0 + 2.0 * m)
    }
}

/// Computes a continued fraction by Lentz's method. Returns `None` if it doesn't converge in [`MOST`] steps.
pub(crate) fn fraction(of: &impl Fraction) -> Option<f64> {
    let (mut above, mut below) = (nonzero(of.terms(0.0).1), 0.0);
    let mut value = above;
    for step in 1..=MOST {
        let (alpha, beta) = of.terms(f64::from(step));
        below = 1.0 / nonzero(beta + alpha * below);
        above = nonzero(beta + alpha / above);
        let change = above * below;
        value *= change;
        if (change - 1.0).abs() < 1e-15 {
            let result = 1.0 / value;
            return (result.is_finite() && result > 0.0).then_some(result);
        }
    }
    None
}

/// The maximum number of steps. Far from the mean, fractions converge in ten to fifty steps. If a fraction needs more
/// steps than the maximum, [`super::tails`] sums the tail instead.
const MOST: u32 = 200;

/// Replaces a value near 0, so that it can be a divisor.
fn nonzero(value: f64) -> f64 {
    if value.abs() < 1e-290 { 1e-290 } else { value }
}
