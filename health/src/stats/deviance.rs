//! How far a count is from its expectation, in the units of a log likelihood.

/// The Poisson deviance x·ln(x/E) − (x − E), halved as usual: how much better the count explains itself than `expected` does.
///
/// At x = 0 it is E, and it is 0 only at x = E. An expectation of 0 counts as the smallest positive number, so that the answer
/// is finite for every input; negative numbers and NaN count as 0.
#[must_use]
pub fn deviance(x: f64, expected: f64) -> f64 {
    let (x, expected) = (amount(x), amount(expected).max(f64::MIN_POSITIVE));
    deviance_of(x, expected, x - expected).clamp(0.0, f64::MAX)
}

/// The same where the caller knows x − E better than the difference of two rounded numbers.
pub(crate) fn deviance_of(x: f64, expected: f64, difference: f64) -> f64 {
    if x <= 0.0 {
        return expected;
    }
    if difference.abs() < 0.1 * (x + expected) {
        return near(x, expected, difference);
    }
    x * libm::log(x / expected) - difference
}

/// The series of Loader (2000), which keeps all digits where x is close to E.
fn near(x: f64, expected: f64, difference: f64) -> f64 {
    let v = difference / (x + expected);
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    let square = v * v;
    for odd in (3..64).step_by(2) {
        term *= square;
        let next = sum + term / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// A finite number that is not negative.
pub(crate) fn amount(value: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    value.clamp(0.0, LARGEST)
}

/// Above every count (2^64) and every mean of them; its square is finite.
const LARGEST: f64 = 1e30;
