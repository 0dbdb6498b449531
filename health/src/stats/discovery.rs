//! Which of many tests are findings, so that few of the findings are false.

/// Controls the false discovery rate by Benjamini and Hochberg (1995): which of the tests to reject so that on average at most
/// the share `rate` of the rejected is false. `ln_p` holds the natural logarithm of each test's p value. Tests known to be
/// unremarkable need not be given, but are counted in `tests`, the number of all.
///
/// The answer is in the order of `ln_p`. NaN counts as p = 1.
#[must_use]
pub fn discoveries(ln_p: &[f64], tests: usize, rate: f64) -> Vec<bool> {
    let limit = discovery_limit(ln_p, tests, rate);
    ln_p.iter().map(|&value| value <= limit).collect()
}

/// The largest ln p that [`discoveries`] rejects; negative infinity where nothing is rejected.
#[must_use]
pub fn discovery_limit(ln_p: &[f64], tests: usize, rate: f64) -> f64 {
    let mut sorted: Vec<f64> = ln_p
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    sorted.sort_by(f64::total_cmp);
    let step = libm::log(rate.clamp(0.0, 1.0)) - libm::log(tests.max(ln_p.len()).max(1) as f64);
    let mut limit = f64::NEG_INFINITY;
    for (rank, &value) in sorted.iter().enumerate() {
        if value <= step + libm::log((rank + 1) as f64) {
            limit = value;
        }
    }
    limit
}
