//! The logarithm of the gamma function, in pieces that keep their digits.

use libm::{lgamma, log, log1p};

/// ½·ln 2π.
pub(crate) const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// ln Γ(n + 1) less Stirling's formula for it, n > 0.
pub(crate) fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return lgamma(n + 1.0) - (n + 0.5) * log(n) + n - HALF_LN_TWO_PI;
    }
    let square = n * n;
    STIRLING.iter().fold(0.0, |sum, term| sum / square + term) / n
}

/// Stirling's series, the last term first: at 16 and more its error is below 1e-16.
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

/// ln Γ(z + c) − ln Γ(z + 1) for z >= 0 and c > 0. It has all digits where z is much larger than c.
pub(crate) fn ln_gamma_ratio(z: f64, c: f64) -> f64 {
    if z < 32.0 {
        return lgamma(z + c) - lgamma(z + 1.0);
    }
    let step = c - 1.0;
    let stirling = stirling_error(z + step) - stirling_error(z);
    stirling + step * (log(z) - 1.0) + (z + step + 0.5) * log1p(step / z)
}
