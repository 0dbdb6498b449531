//! Decimal numbers and shares, read exactly.

use std::fmt;

/// A fraction of whole numbers. It is compared with counts without any rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    part: u64,
    whole: u64,
}

/// The digits that a decimal number may have: with more, a product with a count would not fit into 128 bits.
const MOST_DIGITS: usize = 15;

impl Fraction {
    /// The fraction `part / whole`. A whole of 0 counts as 1.
    #[must_use]
    pub const fn new(part: u64, whole: u64) -> Self {
        let whole = if whole == 0 { 1 } else { whole };
        Self { part, whole }
    }

    /// Reads `12`, `0.5` or `14.4`.
    #[must_use]
    pub fn decimal(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let has_point = text.contains('.');
        let digits: String = [whole, fraction].concat();
        let is_number = !whole.is_empty()
            && has_point != fraction.is_empty()
            && digits.len() <= MOST_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        let places = u32::try_from(fraction.len()).ok()?;
        Some(Self {
            part: is_number.then(|| digits.parse().ok()).flatten()?,
            whole: 10_u64.checked_pow(places)?,
        })
    }

    /// Reads `5%` or `0.5%`, from 0% to 100%. The percent sign is required: a bare 1 could mean 1% or 100%.
    #[must_use]
    pub fn share(text: &str) -> Option<Self> {
        let Self { part, whole } = Self::decimal(text.strip_suffix('%')?)?;
        let whole = whole.checked_mul(100)?;
        (part <= whole).then_some(Self { part, whole })
    }

    /// Whether this fraction of `whole` is less than `part`.
    #[must_use]
    pub fn is_below(self, part: u64, whole: impl Into<u128>) -> bool {
        self.scaled(part) > self.of(whole)
    }

    /// Whether this fraction of `whole` is more than `part`.
    #[must_use]
    pub fn is_above(self, part: u64, whole: impl Into<u128>) -> bool {
        self.scaled(part) < self.of(whole)
    }

    /// Whether this fraction is more than another.
    #[must_use]
    pub fn exceeds(self, other: Self) -> bool {
        self.scaled_by(other) > other.scaled_by(self)
    }

    fn scaled_by(self, other: Self) -> u128 {
        u128::from(self.part) * u128::from(other.whole)
    }

    /// Whether `whole`, times this fraction and another one, is less than `part`.
    #[must_use]
    pub fn times_is_below(self, other: Self, part: u64, whole: u64) -> bool {
        // Both fractions have at most 15 digits, so their products have at most 34 digits and fit. The products with
        // counts may not.
        let (times, of) = (
            u128::from(self.part) * u128::from(other.part),
            u128::from(self.whole) * u128::from(other.whole),
        );
        match (u128::from(part).checked_mul(of), u128::from(whole).checked_mul(times)) {
            (Some(left), Some(right)) => left > right,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => part as f64 / (whole as f64).max(1.0) > self.as_f64() * other.as_f64(),
        }
    }

    /// The largest number of events that is at most this fraction of a whole.
    #[must_use]
    pub fn floor_of(self, whole: u64) -> u64 {
        let part = self.of(whole) / u128::from(self.whole);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// The smallest number of events that is at least this fraction of a whole.
    #[must_use]
    pub fn ceil_of(self, whole: u64) -> u64 {
        let part = self.of(whole).div_ceil(u128::from(self.whole));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    fn scaled(self, part: u64) -> u128 {
        u128::from(part) * u128::from(self.whole)
    }

    /// Saturates only if `whole` is the sum of two counts and the fraction was not read from text.
    fn of(self, whole: impl Into<u128>) -> u128 {
        whole.into().saturating_mul(u128::from(self.part))
    }

    /// The nearest float, for ranking and for text.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.part as f64 / self.whole as f64
    }
}

/// As a share: `0.5%`.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A fraction that was read from text has so few digits that this is exact: it gives the same text, without
        // superfluous zeros. Other fractions are cut after 15 decimal places.
        let (part, whole) = (u128::from(self.part) * 100, u128::from(self.whole));
        write!(f, "{}", part / whole)?;
        let mut rest = part % whole;
        for place in 0..MOST_DIGITS {
            if rest == 0 {
                break;
            }
            if place == 0 {
                f.write_str(".")?;
            }
            write!(f, "{}", rest * 10 / whole)?;
            rest = rest * 10 % whole;
        }
        f.write_str("%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        for (text, expected) in [
            ("5%", Some((5, 100))),
            ("0.5%", Some((5, 1000))),
            ("5.%", None),
            ("0.05", None),
            ("100%", Some((100, 100))),
            ("1", None),
            ("0%", Some((0, 100))),
            ("101%", None),
            ("5", None),
            ("", None),
            ("%", None),
            (".5%", None),
            ("-1%", None),
            ("5 %", None),
            ("1e-3", None),
            ("0.12345678901234567890%", None),
        ] {
            let share = Fraction::share(text);
            let expected = expected.map(|(part, whole)| Fraction { part, whole });
            assert_eq!(share, expected, "{text}");
            if let Some(share) = share {
                assert_eq!(share.to_string(), text);
            }
        }
    }

    #[test]
    fn a_part_is_compared_without_rounding() {
        let share = Fraction::share("5%").unwrap();
        assert!(!share.is_below(5, 100_u64) && share.is_below(6, 100_u64));
        assert!(share.is_below(u64::MAX, 2 * u128::from(u64::MAX)));
        assert!(share.is_above(4, 100_u64));
    }
}
