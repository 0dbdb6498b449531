//! Divides counts. This is the only place in this crate that makes a float.

use crate::counts::Counts;

/// The fractions of events that were delivered, failed or were filtered, each from 0 to 1.
///
/// If there are no events to divide by, a rate is `None`, never 0, 1 or NaN. The service's
/// reference shows no rates; the definitions are ours (`docs/assumptions.md`).
///
/// Each rate is the `f64` nearest to the exact quotient. It is 0 only if its count is 0. If the
/// denominator is below 2^54, it is 1 only if all events of the denominator are in the count.
/// (Above that, a rate may round to 1.) Because of rounding, `delivery` and `error` may not add up
/// to exactly 1.
///
/// ```
/// # use tallyfold_engine::Counts;
/// let rates = Counts { success: 3, errors: 1, filtered: 4 }.rates();
/// assert_eq!((rates.delivery, rates.error, rates.filter), (Some(0.75), Some(0.25), Some(0.5)));
/// assert_eq!(Counts { success: 0, errors: 0, filtered: 4 }.rates().delivery, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Rates {
    /// `success / (success + errors)`: of the events that were to be sent.
    pub delivery: Option<f64>,
    /// `errors / (success + errors)`: of the events that were to be sent.
    pub error: Option<f64>,
    /// `filtered / (success + errors + filtered)`: of all events.
    pub filter: Option<f64>,
}

impl Rates {
    /// The names of the three rates.
    pub const NAMES: [&'static str; 3] = ["delivery", "error", "filter"];

    /// The three rates, in the order of their names.
    #[must_use]
    pub const fn each(self) -> [Option<f64>; 3] {
        [self.delivery, self.error, self.filter]
    }
}

impl Counts {
    /// The rates of these counts.
    #[must_use]
    pub fn rates(self) -> Rates {
        let [success, errors, filtered] =
            [self.success, self.errors, self.filtered].map(u128::from);
        let sent = success + errors;
        Rates {
            delivery: quotient(success, sent),
            error: quotient(errors, sent),
            filter: quotient(filtered, sent + filtered),
        }
    }
}

/// The `f64` nearest to the exact quotient, ties to even; `None` if the denominator is 0. The
/// denominator must be below 2^73, which any sum of a few counts is.
#[must_use]
pub fn quotient(numerator: u128, denominator: u128) -> Option<f64> {
    debug_assert!(denominator < 1 << 73, "more than 54 bits of the quotient are whole");
    if denominator == 0 {
        return None;
    }
    if numerator == 0 {
        return Some(0.0);
    }
    // With its highest bit set, the dividend is at least 2^127, so that the whole part of the
    // quotient is at least 2^54: the 53 bits of a float, the bit that decides about rounding, and
    // at least one below it. The last bit is also set if there is a remainder. The cast then rounds
    // once, to even. Dividing by a power of two is exact, because no value here is subnormal.
    let shift = numerator.leading_zeros();
    let dividend = numerator << shift;
    let rest = u128::from(!dividend.is_multiple_of(denominator));
    let whole = (dividend / denominator) | rest;
    Some(whole as f64 / (1_u128 << shift) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = u64::MAX;

    fn rates(success: u64, errors: u64, filtered: u64) -> [Option<f64>; 3] {
        let counts = Counts { success, errors, filtered };
        let Rates { delivery, error, filter } = counts.rates();
        [delivery, error, filter]
    }

    /// Whether no other float is nearer to the quotient, or as near and even. Compares the quotient
    /// with the halfway points on both sides of the float, by products of integers, which fit in
    /// 128 bits.
    fn is_nearest(found: f64, numerator: u128, denominator: u128) -> bool {
        let mantissa = found.to_bits() & ((1 << 52) - 1) | 1 << 52;
        let exponent = (found.to_bits() >> 52) as i32 - 1_075;
        let compare = |odd: u64, exponent: i32| {
            let product = u128::from(odd) * denominator;
            if exponent <= 0 {
                (numerator << -exponent).cmp(&product)
            } else {
                numerator.cmp(&(product << exponent))
            }
        };
        let above = compare(2 * mantissa + 1, exponent - 1);
        // Below a power of two, floats are twice as near to each other.
        let below = if mantissa == 1 << 52 {
            compare(4 * mantissa - 1, exponent - 2)
        } else {
            compare(2 * mantissa - 1, exponent - 1)
        };
        let even = mantissa.is_multiple_of(2);
        (above.is_lt() || (above.is_eq() && even)) && (below.is_gt() || (below.is_eq() && even))
    }

    #[test]
    fn a_rate_of_nothing_is_none() {
        assert_eq!(rates(0, 0, 0), [None; 3]);
        assert_eq!(rates(0, 0, 9), [None, None, Some(1.0)]);
        assert_eq!(rates(0, 5, 0), [Some(0.0), Some(1.0), Some(0.0)]);
        assert_eq!(rates(5, 0, 0), [Some(1.0), Some(0.0), Some(0.0)]);
    }

    #[test]
    fn the_largest_counts_have_rates() {
        let third = Some(1.0 / 3.0);
        assert_eq!(rates(MOST, MOST, MOST), [Some(0.5), Some(0.5), third]);
        assert_eq!(rates(1, MOST, 0)[0], Some(f64::powi(2.0, -64)));
        assert_eq!(rates(MOST, 1, 0)[0], Some(1.0));
    }

    #[test]
    fn a_rate_below_one_is_seen_up_to_2_to_the_54() {
        let next_to_one = 1.0 - f64::EPSILON / 2.0;
        for denominator in [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 54) - 1] {
            assert_eq!(rates(denominator - 1, 1, 0)[0], Some(next_to_one));
        }
        // Halfway between the last float below 1 and 1, which is even.
        assert_eq!(rates((1 << 54) - 1, 1, 0)[0], Some(1.0));
        assert_eq!(rates((1 << 54) - 2, 2, 0)[0], Some(next_to_one));
    }

    #[test]
    fn quotients_are_the_nearest_floats() {
        let edges = [1, 2, 3, 7, 10, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 54) + 2];
        let large = [(1 << 63) + 1, u128::from(MOST) - 1, u128::from(MOST), 1 << 64];
        let mut values: Vec<u128> = edges.into_iter().chain(large).collect();
        values.extend([2 * u128::from(MOST), 3 * u128::from(MOST)]);
        // Numbers of every length, from a fixed seed.
        let mut state = 7_u64;
        for length in (1..=64).cycle().take(400) {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            values.push(u128::from(state >> (64 - length)).max(1));
        }
        for numerator in &values {
            for denominator in &values {
                let found = quotient(*numerator, *denominator).unwrap();
                assert!(is_nearest(found, *numerator, *denominator), "{numerator} / {denominator}");
                let other = f64::from_bits(found.to_bits() + 1);
                assert!(!is_nearest(other, *numerator, *denominator));
            }
        }
    }
}
