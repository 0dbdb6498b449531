//! How likely a count is if rates drift naturally.

/// The logarithm of the probability of a count under a negative binomial distribution, without the terms that depend on
/// the count alone. The count is Poisson around a mean that itself varies, with the given relative variance.
pub(crate) fn ln_likelihood(count: f64, mean: f64, relative_variance: f64) -> f64 {
    let shape = 1.0 / relative_variance.clamp(LEAST, MOST);
    let mean = mean.clamp(LEAST, MOST);
    let spread = shape + mean;
    let none = shape * libm::log(shape / spread);
    if count <= 0.0 {
        return none;
    }
    none + count * libm::log(mean / spread) + ln_rising(shape, count)
}

/// Bounds of divisors, far beyond all counts.
const LEAST: f64 = 1e-12;
const MOST: f64 = 1e24;

/// ln Γ(from + steps) − ln Γ(from), which is the logarithm of from · (from + 1) · … with that many steps.
pub(crate) fn ln_rising(from: f64, steps: f64) -> f64 {
    if steps <= FEW {
        return libm::log(rising(from, steps));
    }
    if from > FEW {
        return ln_gamma(from + steps) - ln_gamma(from);
    }
    ln_gamma(from + steps) - ln_gamma(from + FEW) + libm::log(rising(from, FEW))
}

/// Up to so many factors are multiplied, which is faster than two series, and finite for every factor up to 10^18.
const FEW: f64 = 16.0;

fn rising(from: f64, steps: f64) -> f64 {
    let mut product = 1.0;
    let mut done = 0.0;
    while done < steps {
        product *= from + done;
        done += 1.0;
    }
    product
}

/// Stirling's series, which has 13 digits above [`FEW`].
fn ln_gamma(of: f64) -> f64 {
    let inverse = 1.0 / of;
    let square = inverse * inverse;
    let series =
        inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (of - 0.5) * libm::log(of) - of + HALF_LN_TWO_PI + series
}

const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_product_is_the_ratio_of_gamma_functions() {
        for from in [1e-9, 0.04, 0.5, 1.0, 7.25, 15.9, 16.0, 16.1, 26.0, 400.0] {
            for steps in [0.0, 1.0, 2.0, 15.0, 16.0, 17.0, 100.0, 1e6, 1e12] {
                let exact = libm::lgamma(from + steps) - libm::lgamma(from);
                let off = (ln_rising(from, steps) - exact).abs();
                assert!(
                    off <= 1e-12 * libm::lgamma(from + steps).abs().max(10.0),
                    "{from} {steps} {off}"
                );
            }
        }
    }

    #[test]
    fn a_likelihood_is_finite_and_highest_where_the_mean_is_the_count() {
        for count in [0.0, 1.0, 30.0, 1e9, 1.8e19] {
            for variance in [0.0, 0.04, 1.0, 1e30, f64::INFINITY] {
                for mean in [0.0, 1e-300, 1e-3, 1.0, 1e19, f64::INFINITY] {
                    assert!(ln_likelihood(count, mean, variance).is_finite());
                }
            }
            let at = |mean: f64| ln_likelihood(count, mean, 0.04);
            assert!(at(count) >= at(count * 1.5 + 0.1) && at(count) >= at(count * 0.5));
        }
    }
}
