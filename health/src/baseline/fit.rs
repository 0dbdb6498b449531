//! A quasi-Poisson level that past incidents do not teach.

use crate::baseline::reference::Observation;

/// The rate of events per whole, and how much more it varies than a Poisson count.
pub(crate) fn fit(observations: &[Observation]) -> (f64, f64) {
    let mut weights = vec![1.0; observations.len()];
    let mut fitted = weighted(observations, &weights);
    for _ in 0..3 {
        for (weight, one) in weights.iter_mut().zip(observations) {
            let residual = anscombe(one.part, fitted.0 * one.whole) / libm::sqrt(fitted.1);
            *weight = if residual.abs() > 2.58 {
                1.0 / (residual * residual)
            } else {
                1.0
            };
        }
        fitted = weighted(observations, &weights);
    }
    fitted
}

fn weighted(observations: &[Observation], weights: &[f64]) -> (f64, f64) {
    let (mut parts, mut wholes, mut sum) = (0.0, 0.0, 0.0);
    for (one, weight) in observations.iter().zip(weights) {
        parts += one.part * weight;
        wholes += one.whole * weight;
        sum += weight;
    }
    let rate = parts / f64::max(wholes, f64::MIN_POSITIVE);
    let squares: f64 = observations
        .iter()
        .zip(weights)
        .map(|(one, weight)| weight * pearson(one.part, rate * one.whole))
        .sum();
    (rate, (squares / f64::max(sum - 1.0, 1.0)).max(1.0))
}

fn pearson(part: f64, expected: f64) -> f64 {
    if expected <= 0.0 {
        return 0.0;
    }
    (part - expected) * (part - expected) / expected
}

fn anscombe(part: f64, expected: f64) -> f64 {
    if expected <= 0.0 {
        return 0.0;
    }
    let roots = libm::cbrt(part * part) - libm::cbrt(expected * expected);
    1.5 * roots / libm::sqrt(libm::cbrt(expected))
}
