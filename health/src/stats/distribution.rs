//! The distributions of counts, each as what its tails are made from.

use crate::stats::fraction::{Beta, GammaLower, GammaUpper, fraction};
use crate::stats::mass::{self, BetaBinomial, Chance, LEAST};

/// A distribution of counts from 0 to `end`.
pub(crate) trait Distribution {
    fn mean(&self) -> f64;
    /// The largest count; may be infinite.
    fn end(&self) -> f64;
    /// ln P(X = k), also between whole numbers.
    fn ln_mass(&self, k: f64) -> f64;
    /// P(X = k + 1) / P(X = k).
    fn ratio(&self, k: f64) -> f64;
    /// P(X <= k) / P(X = k), where there is a quick way to it. For k of at most about the mean.
    fn low(&self, _k: f64) -> Option<f64> {
        None
    }
    /// P(X >= k) / P(X = k), where there is a quick way to it. For k of at least about the mean.
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
        fraction(&GammaUpper {
            b: k + 1.0,
            mean: self.mean,
        })
        .map(|value| self.mean * value)
    }

    fn high(&self, k: f64) -> Option<f64> {
        fraction(&GammaLower {
            a: k,
            mean: self.mean,
        })
        .map(|value| k * value)
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

    /// The mean of what is left when `k` events have come, times the chance of one more.
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
        let beta = Beta {
            a: self.n - k,
            b: k + 1.0,
            x: q,
            y: p,
            lambda: (self.n + 1.0) * p - k - 1.0,
        };
        fraction(&beta).map(|value| (self.n - k) * p * value)
    }

    fn high(&self, k: f64) -> Option<f64> {
        let Chance { p, q } = self.chance;
        let beta = Beta {
            a: k,
            b: self.n - k + 1.0,
            x: p,
            y: q,
            lambda: k - (self.n + 1.0) * p,
        };
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
