//! Probabilities of a count this low and this high, as natural logarithms.

use crate::stats::deviance::amount;
use crate::stats::mass;
use crate::stats::normal::ln_complement;

/// How probable a count this low, and one this high, is: ln P(X <= x) and ln P(X >= x). Never above 0; finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// ln P(X <= x).
    pub low: f64,
    /// ln P(X >= x).
    pub high: f64,
}

impl Tails {
    /// Both are certain.
    pub const CERTAIN: Self = Self {
        low: 0.0,
        high: 0.0,
    };
}

/// The tails of a Poisson count at `x`. A mean that is negative or NaN counts as 0.
#[must_use]
pub fn poisson(x: u64, mean: f64) -> Tails {
    let mean = amount(mean).max(f64::MIN_POSITIVE);
    let k = x as f64;
    tails(k, mass::poisson(k, mean), mean, &|j| mean / (j + 1.0))
}

/// The tails at `x` of a negative binomial count with this mean and a variance of `dispersion` times the mean.
///
/// A dispersion of at most 1, or NaN, makes it a Poisson count. A mean that is negative or NaN counts as 0.
#[must_use]
pub fn negative_binomial(x: u64, mean: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 {
        return poisson(x, mean);
    }
    let mean = amount(mean).max(f64::MIN_POSITIVE);
    let k = x as f64;
    let ratio = |j: f64| (j * excess + mean) / ((1.0 + excess) * (j + 1.0));
    tails(k, mass::negative_binomial(k, mean, excess), mean, &ratio)
}

/// The tails at `x` of a binomial count of `n` with probability `p`. An `x` above `n` counts as `n`; a `p` outside of 0 to 1
/// as the nearest of them, NaN as 0.
#[must_use]
pub fn binomial(x: u64, n: u64, p: f64) -> Tails {
    if n == 0 {
        return Tails::CERTAIN;
    }
    let (k, n, p) = (x.min(n) as f64, n as f64, probability(p));
    let odds = p / (1.0 - p);
    tails(k, mass::binomial(k, n, p), n * p, &|j| {
        (n - j) / (j + 1.0) * odds
    })
}

/// The tails at `x` of a beta-binomial count of `n` with mean `n`·`p` and `dispersion` times the variance of a binomial count.
///
/// A dispersion of at most 1, or NaN, makes it binomial; more than `n` cannot be, and counts as (nearly) `n`.
#[must_use]
pub fn beta_binomial(x: u64, n: u64, p: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 || n < 2 {
        return binomial(x, n, p);
    }
    let (k, n, p) = (x.min(n) as f64, n as f64, probability(p));
    let size = ((n - 1.0 - excess) / excess).max(1e-6);
    let (a, b) = (size * p, size * (1.0 - p));
    let ratio = |j: f64| (n - j) / (j + 1.0) * ((j + a) / (n - j - 1.0 + b));
    tails(k, mass::beta_binomial(k, n, a, b), n * p, &ratio)
}

/// A probability that is neither 0 nor 1.
fn probability(p: f64) -> f64 {
    if p.is_nan() {
        return f64::MIN_POSITIVE;
    }
    p.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON)
}

/// Sums outward from `k`, whose ln probability is `ln_mass`; `ratio` is P(j + 1)/P(j).
fn tails(k: f64, ln_mass: f64, mean: f64, ratio: &dyn Fn(f64) -> f64) -> Tails {
    let below = || {
        sum(
            k,
            |j| if j <= 0.0 { 0.0 } else { 1.0 / ratio(j - 1.0) },
            -1.0,
        )
    };
    let above = || sum(k, ratio, 1.0);
    let (near, far): (&dyn Fn() -> f64, &dyn Fn() -> f64) = if k <= mean {
        (&below, &above)
    } else {
        (&above, &below)
    };
    let strict = near();
    let this = ln_mass + libm::log1p(strict);
    let mut other = ln_complement((ln_mass + libm::log(strict)).min(0.0));
    if other.is_nan() || other < -1.0 {
        other = ln_mass + libm::log1p(far());
    }
    let [this, other] = [this, other].map(|ln_p| ln_p.clamp(f64::MIN, 0.0));
    if k <= mean {
        Tails {
            low: this,
            high: other,
        }
    } else {
        Tails {
            low: other,
            high: this,
        }
    }
}

fn sum(k: f64, ratio: impl Fn(f64) -> f64, step: f64) -> f64 {
    let (mut j, mut term, mut sum) = (k, 1.0, 0.0);
    for _ in 0..1_000_000 {
        term *= ratio(j);
        if term <= 0.0 || sum + term == sum {
            break;
        }
        sum += term;
        j += step;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{beta_binomial, binomial, negative_binomial, poisson};

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-10 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn known_tails() {
        near(poisson(3, 2.0).high, libm::log(0.323_323_583_816_936_4));
        near(negative_binomial(3, 2.0, 2.0).high, libm::log(0.3125));
        near(binomial(3, 4, 0.5).high, libm::log(0.3125));
        near(
            beta_binomial(0, 2, 0.5, 4.0 / 3.0).low,
            libm::log(1.0 / 3.0),
        );
    }
}
