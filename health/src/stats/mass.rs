//! Natural logarithms of the probabilities of single counts, by the saddle point form of Loader (2000). It has no difference of
//! two large numbers, so the digits stay for large counts and far from the mean.

use crate::stats::deviance::deviance_of;

const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// ln P(X = k) of a Poisson count with a positive mean.
pub(crate) fn poisson(k: f64, mean: f64) -> f64 {
    if k == 0.0 {
        return -mean;
    }
    -stirling_error(k) - deviance_of(k, mean, k - mean) - HALF_LN_TWO_PI - 0.5 * libm::log(k)
}

/// ln P(X = k) of a negative binomial count with a positive mean and a variance of (1 + `excess`) times the mean.
pub(crate) fn negative_binomial(k: f64, mean: f64, excess: f64) -> f64 {
    let size = mean / excess;
    if k == 0.0 {
        return -size * libm::log1p(excess);
    }
    let total = size + k;
    let dispersion = 1.0 + excess;
    let difference = (k - mean) / dispersion;
    stirling_error(total)
        - stirling_error(size)
        - stirling_error(k)
        - deviance_of(size, size + difference, -difference)
        - deviance_of(k, (k * excess + mean) / dispersion, difference)
        - HALF_LN_TWO_PI
        + 0.5 * (libm::log(size / total) - libm::log(k))
}

/// ln P(X = k) of a binomial count of `n` with probability 0 < `p` < 1.
pub(crate) fn binomial(k: f64, n: f64, p: f64) -> f64 {
    if k == 0.0 {
        return n * libm::log1p(-p);
    }
    if k == n {
        return n * libm::log(p);
    }
    let difference = k - n * p;
    stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance_of(k, n * p, difference)
        - deviance_of(n - k, n * (1.0 - p), -difference)
        - HALF_LN_TWO_PI
        + 0.5 * (libm::log(n / (n - k)) - libm::log(k))
}

/// ln P(X = k) of a binomial count of `n` whose probability is itself beta distributed with positive `a` and `b`.
pub(crate) fn beta_binomial(k: f64, n: f64, a: f64, b: f64) -> f64 {
    ln_choose(n, k) + ln_beta(k + a, n - k + b) - ln_beta(a, b)
}

fn ln_choose(n: f64, k: f64) -> f64 {
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
}

fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

/// ln Γ(n + 1) less Stirling's formula for it.
pub(crate) fn stirling_error(n: f64) -> f64 {
    if n < 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * libm::log(n) + n - HALF_LN_TWO_PI;
    }
    let square = n * n;
    let series = [
        1.0 / 156.0,
        -691.0 / 360_360.0,
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0,
    ];
    series.iter().fold(0.0, |sum, term| sum / square + term) / n
}
