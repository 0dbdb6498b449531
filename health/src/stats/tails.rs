//! Tail probabilities of counts, as natural logarithms.
//!
//! This is our own code because no crate fits. The crates with these distributions have at least one of these problems:
//! they return probabilities, which underflow at 1e-308; they call functions of std whose last bits differ between
//! platforms; they panic on parameters out of range.
//!
//! Relative errors of ln p in the golden tests: below 1e-12 (Poisson, negative binomial), 1e-11 (binomial), and 1e-10
//! (beta-binomial; 1e-9 for the probability of no event at all where it is nearly 1).

use libm::{erfc, exp, log, log1p};

use super::distribution::{Binomial, Distribution, NegativeBinomial, Poisson};
use super::mass::{BetaBinomial, Chance, HALF_LN_TWO_PI, LEAST, amount};

/// The lower and the upper tail probability of a count x: ln P(X <= x) and ln P(X >= x). Both are finite and at most 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// ln P(X <= x).
    pub low: f64,
    /// ln P(X >= x).
    pub high: f64,
}

impl Tails {
    /// Both probabilities are 1: there is nothing to judge.
    pub const CERTAIN: Self = Self { low: 0.0, high: 0.0 };
}

/// Returns the tails of a Poisson count at `x`. A mean that is negative or NaN counts as 0, and a mean above 1e30 as 1e30.
#[must_use]
pub fn poisson(x: u64, mean: f64) -> Tails {
    tails(&Poisson { mean: positive(mean) }, x as f64)
}

/// Returns the tails at `x` of a negative binomial count with this mean and a variance of `dispersion` times the mean.
///
/// With a dispersion of at most 1, or NaN, the count is Poisson. A mean that is negative or NaN counts as 0, and a mean
/// above 1e30 as 1e30.
#[must_use]
pub fn negative_binomial(x: u64, mean: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 {
        return poisson(x, mean);
    }
    tails(&NegativeBinomial { mean: positive(mean), excess }, x as f64)
}

/// Returns the tails at `x` of a binomial count with `n` trials and probability `p`. An `x` above `n` counts as `n`.
/// `p` is clamped to 0 to 1, and NaN counts as 0. (A probability of 0 is replaced by 1e-100, so that the logarithms
/// stay finite.)
#[must_use]
pub fn binomial(x: u64, n: u64, p: f64) -> Tails {
    if n == 0 {
        return Tails::CERTAIN;
    }
    tails(&Binomial { n: n as f64, chance: Chance::new(p) }, x.min(n) as f64)
}

/// Returns the tails at `x` of a beta-binomial count with `n` trials, mean `n`·`p`, and `dispersion` times the variance
/// of a binomial count.
///
/// With a dispersion of at most 1, or NaN, the count is binomial. A beta-binomial count always has a dispersion below `n`, so a
/// larger argument counts as just below `n`. The other arguments are handled as in [`binomial`].
#[must_use]
pub fn beta_binomial(x: u64, n: u64, p: f64, dispersion: f64) -> Tails {
    let excess = amount(dispersion - 1.0);
    if excess == 0.0 || n < 2 {
        return binomial(x, n, p);
    }
    tails(&BetaBinomial::new(n as f64, Chance::new(p), excess), x.min(n) as f64)
}

/// Returns the mean as a finite number above 0.
fn positive(mean: f64) -> f64 {
    amount(mean).max(LEAST)
}

/// ln 0.9. If a probability is above 0.9, its logarithm is computed from its complement, to keep all digits.
const LIKELY: f64 = -0.105_360_515_657_826_3;

fn tails(of: &impl Distribution, k: f64) -> Tails {
    let is_low = k <= of.mean();
    let ln_mass = of.ln_mass(k).clamp(f64::MIN, 0.0);
    if k <= 0.0 {
        return Tails { low: ln_mass, high: 0.0 };
    }
    if k >= of.end() {
        return Tails { low: 0.0, high: ln_mass };
    }
    let quick = if is_low { of.low(k) } else { of.high(k) };
    // If `strictly` is small, the subtraction has lost digits. In this case, only a few terms matter, so they are summed.
    let strictly = quick
        .map(|all| all - 1.0)
        .filter(|strictly| *strictly > 0.5)
        .unwrap_or_else(|| beyond(of, k, ln_mass, is_low));
    let mut this = ln_mass + libm::log1p(strictly);
    let mut other = ln_mass + libm::log(strictly);
    if this.max(other) > LIKELY {
        let strictly = beyond(of, k, ln_mass, !is_low);
        let precise = ln_complement(ln_mass + libm::log(strictly));
        this = if this.min(precise) > LIKELY { precise } else { this };
        other = ln_mass + libm::log1p(strictly);
    } else {
        other = ln_complement(other);
    }
    let [this, other] = [this, other].map(|ln_p| ln_p.clamp(f64::MIN, 0.0));
    if is_low { Tails { low: this, high: other } } else { Tails { low: other, high: this } }
}

/// Returns the probability of all counts below `k`, or of all counts above `k`, divided by the probability of `k`.
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
    Outward { length: of.end() - k, ln_relative: &ln_relative, ratio: &|s| of.ratio(k + s) }.sum()
}

/// The counts of a distribution on one side of a given count.
pub(crate) struct Outward<'a> {
    /// The number of counts in this direction, which may be infinite.
    pub(crate) length: f64,
    /// Returns ln(P(`s` steps away) / P(the count itself)), also between whole steps.
    pub(crate) ln_relative: &'a dyn Fn(f64) -> f64,
    /// Returns P(`s` + 1 steps away) / P(`s` steps away).
    pub(crate) ratio: &'a dyn Fn(f64) -> f64,
}

/// How many probabilities are added one by one at each end. Between the ends, probabilities are smooth enough to be
/// integrated.
const EACH: u32 = 128;
/// Terms below this share of the sum don't change the sum.
const NEGLIGIBLE: f64 = 1e-17;

/// A limit for terms. Sums of many such terms are still finite.
const LARGE: f64 = 1e300;

/// The result of adding probabilities one by one.
struct Run {
    sum: f64,
    /// The last six probabilities, in order.
    last: [f64; 6],
    /// Whether the probabilities after these are negligible.
    is_all: bool,
}

impl Outward<'_> {
    /// Returns the sum of all probabilities in this direction, divided by the probability of the count itself. The sum
    /// does not include the count itself.
    pub(crate) fn sum(&self) -> f64 {
        let each = f64::from(EACH);
        if self.length <= 4.0 * each {
            return run(1.0, 0.0, self.length as u32, |s| (self.ratio)(s)).sum;
        }
        let near = run(1.0, 0.0, EACH, |s| (self.ratio)(s));
        if near.is_all {
            return near.sum;
        }
        let mut sum = near.sum + self.integral(|s| s, near.sum) + near.rest_of_integral();
        if self.length.is_finite() {
            let end = self.relative(self.length);
            let far = run(end, end, EACH, |t| 1.0 / (self.ratio)(self.length - t - 1.0));
            sum += far.sum;
            if !far.is_all {
                sum += self.integral(|t| self.length - t, sum) + far.rest_of_integral();
            }
        }
        sum
    }

    /// Integrates from the end of a run to the middle, in panels that double in length. `place` converts a distance from the
    /// run's start into steps from the count. The integration stops early if the probabilities become negligible before the
    /// middle.
    fn integral(&self, place: impl Fn(f64) -> f64, sum: f64) -> f64 {
        let (mut from, mut integral) = (f64::from(EACH), 0.0);
        let middle = 0.5 * self.length;
        for _ in 0..1_000 {
            let to = (2.0 * from).min(middle);
            let panel = panel(from, to, |distance| self.relative(place(distance)));
            integral += panel;
            let is_fading = self.relative(place(to)) <= self.relative(place(from));
            if to >= middle || is_fading && panel <= NEGLIGIBLE * (sum + integral) {
                break;
            }
            from = to;
        }
        integral
    }

    fn relative(&self, s: f64) -> f64 {
        // The limit keeps sums of such terms finite.
        libm::exp((self.ln_relative)(s).min(600.0))
    }
}

/// Adds at most `most` probabilities after `first` to `sum`.
fn run(first: f64, sum: f64, most: u32, ratio: impl Fn(f64) -> f64) -> Run {
    let (mut term, mut sum, mut last) = (first, sum, [first; 6]);
    for step in 0..most {
        // Floats can't represent all counts beyond 2^53, so the next count may be the same.
        let factor =
            Some(ratio(f64::from(step))).filter(|factor| factor.is_finite()).unwrap_or(1.0);
        term = (term * factor).min(LARGE);
        sum += term;
        last.rotate_left(1);
        last[5] = term;
        if factor < 1.0 && term * factor <= NEGLIGIBLE * (1.0 - factor) * sum {
            return Run { sum, last, is_all: true };
        }
    }
    Run { sum, last, is_all: false }
}

impl Run {
    /// Returns the difference between the sum and the integral of the probabilities after this run, by Gregory's formula.
    fn rest_of_integral(&self) -> f64 {
        let mut differences = self.last;
        let mut rest = -0.5 * self.last[5];
        for (order, weight) in GREGORY.iter().enumerate() {
            for at in (order + 1..6).rev() {
                differences[at] -= differences[at - 1];
            }
            rest -= weight * differences[5];
        }
        rest
    }
}

/// The coefficients of Gregory's formula.
const GREGORY: [f64; 5] = [1.0 / 12.0, 1.0 / 24.0, 19.0 / 720.0, 3.0 / 160.0, 863.0 / 60_480.0];

/// Integrates by Gauss–Legendre quadrature with 16 points.
fn panel(from: f64, to: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let pairs = POINTS
        .iter()
        .map(|(x, weight)| weight * (value(middle - half * x) + value(middle + half * x)));
    half * pairs.sum::<f64>()
}

/// The positive quadrature points between −1 and 1, with their weights.
const POINTS: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];

/// Returns ln P(Z >= z) of a standard normal Z, accurate even far from 0. `z` is clamped to ±1e150, and NaN counts as 0.
#[must_use]
pub fn normal_ln_tail(z: f64) -> f64 {
    let z = if z.is_nan() { 0.0 } else { z.clamp(-1e150, 1e150) };
    if z < -1.0 {
        return log1p(-0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2));
    }
    if z < 5.0 {
        return log(0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2));
    }
    // Laplace's continued fraction, from the inside out. For z of 5 and more, fifty steps give full precision.
    let fraction = (1..=50).rev().fold(z, |inner, step| z + f64::from(step) / inner);
    -0.5 * z * z - HALF_LN_TWO_PI - log(fraction)
}

/// Returns ln(1 − e^`ln_p`), the logarithm of the complement of a probability.
pub(crate) fn ln_complement(ln_p: f64) -> f64 {
    if ln_p > -std::f64::consts::LN_2 {
        return log(-libm::expm1(ln_p.min(0.0)));
    }
    log1p(-exp(ln_p))
}

#[cfg(test)]
mod tests {
    use super::{beta_binomial, binomial, negative_binomial, poisson};

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-14 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn tails_equal_known_probabilities() {
        near(poisson(3, 2.0).high, libm::log(0.323_323_583_816_936_4));
        near(negative_binomial(3, 2.0, 2.0).high, libm::log(0.3125));
        near(binomial(3, 4, 0.5).high, libm::log(0.3125));
        near(beta_binomial(0, 2, 0.5, 4.0 / 3.0).low, libm::log(1.0 / 3.0));
    }
}
