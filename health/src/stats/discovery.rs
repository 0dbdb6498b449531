//! Which of many tests are findings, so that few of the findings are false.

/// The largest ln p at which a test is rejected; negative infinity where none is.
///
/// Controls the false discovery rate by Benjamini and Hochberg (1995): on average at most the share `rate` of the rejected is
/// false. `ln_p` holds the natural logarithm of each test's p value; NaN counts as p = 1. Tests known to be unremarkable need not
/// be given, but are counted in `tests`, the number of all.
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
