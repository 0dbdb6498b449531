//! The normal distribution.

use libm::{erfc, exp, log, log1p};

use crate::stats::gamma::HALF_LN_TWO_PI;

/// ln P(Z >= z) of a standard normal Z, accurate as far out as z is finite. NaN counts as 0.
#[must_use]
pub fn normal_ln_tail(z: f64) -> f64 {
    let z = if z.is_nan() {
        0.0
    } else {
        z.clamp(-1e150, 1e150)
    };
    if z < -1.0 {
        return log1p(-0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2));
    }
    if z < 5.0 {
        return log(0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2));
    }
    // Laplace's continued fraction, from the inside out; at 5 and more, fifty steps are all the digits there are.
    let fraction = (1..=50)
        .rev()
        .fold(z, |inner, step| z + f64::from(step) / inner);
    -0.5 * z * z - HALF_LN_TWO_PI - log(fraction)
}

/// ln(1 − e^`ln_p`) for a logarithm of a probability.
pub(crate) fn ln_complement(ln_p: f64) -> f64 {
    if ln_p > -std::f64::consts::LN_2 {
        return log(-libm::expm1(ln_p.min(0.0)));
    }
    log1p(-exp(ln_p))
}
