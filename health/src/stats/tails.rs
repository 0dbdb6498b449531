//! Probabilities of a count this low and this high, as natural logarithms.
//!
//! They are our own because no crate has them: those that have these distributions answer with probabilities, which end at
//! 1e-308, call functions of std whose last bits differ between platforms, or panic on parameters out of range.
//!
//! Relative errors of ln p in the golden tests: below 1e-12 (Poisson, negative binomial), 1e-11 (binomial), and 1e-10
//! (beta-binomial; 1e-9 for the probability of no event at all where it is nearly 1).

use crate::stats::deviance::amount;
use crate::stats::distribution::{Binomial, Distribution, NegativeBinomial, Poisson};
use crate::stats::mass::{BetaBinomial, Chance, LEAST};
use crate::stats::normal::ln_complement;
use crate::stats::outward::Outward;

/// How probable a count this low, and one this high, is: ln P(X <= x) and ln P(X >= x). Never above 0, and finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// ln P(X <= x).
    pub low: f64,
    /// ln P(X >= x).
    pub high: f64,
}

impl Tails {
    /// Both are certain: there is nothing to judge.
    pub const CERTAIN: Self = Self {
        low: 0.0,
        high: 0.0,
    };
}

/// The tails of a Poisson count at `x`. A mean that is negative or NaN counts as 0, one above 1e30 as 1e30.
#[must_use]
pub fn poisson(x: u64, mean: f64) -> Tails {
    tails(
        &Poisson {
            mean: positive(mean),
        },
        x as f64,
    )
}

/// The tails at `x` of a negative binomial count with this mean and a variance of `dispersion` times the mean.
///
/// A dispersion of at most 1, or NaN, makes it a Poisson count. A mean that is negative or NaN counts as 0, one above 1e30 as
/// 1e30.
#[must_use]
pub fn negative_binomial(x: u64, mean: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 {
        return poisson(x, mean);
    }
    tails(
        &NegativeBinomial {
            mean: positive(mean),
            excess,
        },
        x as f64,
    )
}

/// The tails at `x` of a binomial count of `n` with probability `p`. An `x` above `n` counts as `n`; a `p` outside of 0 to 1
/// as the nearest of them, NaN as 0. (A probability of 0 is taken for 1e-100, so that the logarithms stay finite.)
#[must_use]
pub fn binomial(x: u64, n: u64, p: f64) -> Tails {
    if n == 0 {
        return Tails::CERTAIN;
    }
    tails(
        &Binomial {
            n: n as f64,
            chance: Chance::new(p),
        },
        x.min(n) as f64,
    )
}

/// The tails at `x` of a beta-binomial count of `n` with mean `n`·`p` and `dispersion` times the variance of a binomial count.
///
/// A dispersion of at most 1, or NaN, makes it binomial; there is none of `n` and more, which counts as just below `n`.
/// Otherwise as [`binomial`].
#[must_use]
pub fn beta_binomial(x: u64, n: u64, p: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 || n < 2 {
        return binomial(x, n, p);
    }
    tails(
        &BetaBinomial::new(n as f64, Chance::new(p), excess),
        x.min(n) as f64,
    )
}

/// A finite mean above 0.
fn positive(mean: f64) -> f64 {
    amount(mean).max(LEAST)
}

/// ln 0.9: from here on the logarithm of a probability is taken from what it lacks of 1.
const LIKELY: f64 = -0.105_360_515_657_826_3;

fn tails(of: &impl Distribution, k: f64) -> Tails {
    let is_low = k <= of.mean();
    let ln_mass = of.ln_mass(k).clamp(f64::MIN, 0.0);
    if k <= 0.0 {
        return Tails {
            low: ln_mass,
            high: 0.0,
        };
    }
    if k >= of.end() {
        return Tails {
            low: 0.0,
            high: ln_mass,
        };
    }
    let quick = if is_low { of.low(k) } else { of.high(k) };
    // Where little follows, the difference would lose its digits; but then the sum is short.
    let strictly = quick
        .map(|all| all - 1.0)
        .filter(|strictly| *strictly > 0.5)
        .unwrap_or_else(|| beyond(of, k, ln_mass, is_low));
    let mut this = ln_mass + libm::log1p(strictly);
    let mut other = ln_mass + libm::log(strictly);
    if this.max(other) > LIKELY {
        let strictly = beyond(of, k, ln_mass, !is_low);
        let precise = ln_complement(ln_mass + libm::log(strictly));
        this = if this.min(precise) > LIKELY {
            precise
        } else {
            this
        };
        other = ln_mass + libm::log1p(strictly);
    } else {
        other = ln_complement(other);
    }
    let [this, other] = [this, other].map(|ln_p| ln_p.clamp(f64::MIN, 0.0));
    if is_low {
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

/// The probability of all counts below `k`, or of all above it, over that of `k`.
fn beyond(of: &impl Distribution, k: f64, ln_mass: f64, is_below: bool) -> f64 {
    if is_below {
        let ln_relative = |s: f64| of.ln_mass((k - s).max(0.0)) - ln_mass;
        return Outward {
            length: k,
            ln_relative: &ln_relative,
            ratio: &|s| 1.0 / of.ratio((k - s - 1.0).max(0.0)),
        }
        .sum();
    }
    let ln_relative = |s: f64| of.ln_mass((k + s).min(of.end())) - ln_mass;
    Outward {
        length: of.end() - k,
        ln_relative: &ln_relative,
        ratio: &|s| of.ratio(k + s),
    }
    .sum()
}

#[cfg(test)]
mod tests {
    use super::{beta_binomial, binomial, negative_binomial, poisson};

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-14 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn tails_that_are_known_as_fractions() {
        near(poisson(3, 2.0).high, libm::log(0.323_323_583_816_936_4));
        near(negative_binomial(3, 2.0, 2.0).high, libm::log(0.3125));
        near(binomial(3, 4, 0.5).high, libm::log(0.3125));
        near(
            beta_binomial(0, 2, 0.5, 4.0 / 3.0).low,
            libm::log(1.0 / 3.0),
        );
    }
}
