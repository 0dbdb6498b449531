//! The three counts of an entry, and the only place that reads one.

use crate::error::{Code, Error, Result};

/// How many events were delivered, failed and were filtered (service reference 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Events delivered.
    pub success: u64,
    /// Events not sent due to an error.
    pub errors: u64,
    /// Events filtered from the stream.
    pub filtered: u64,
}

impl Counts {
    /// The names of the three counts.
    pub const NAMES: [&'static str; 3] = ["success", "errors", "filtered"];

    /// Each sum, unless one is above 2^64 - 1.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            success: self.success.checked_add(other.success)?,
            errors: self.errors.checked_add(other.errors)?,
            filtered: self.filtered.checked_add(other.filtered)?,
        })
    }
}

/// Reads a count as the service sends it: a string of ASCII digits, leading zeros allowed.
///
/// # Errors
/// `invalid_count` and `count_overflow`, without a place.
pub(crate) fn parse_count(text: &str) -> Result<u64> {
    if text.is_empty() {
        let message = "a count is an empty string; want ASCII digits";
        return Err(Error::new(Code::InvalidCount, message));
    }
    if let Some((at, _)) = text
        .bytes()
        .enumerate()
        .find(|(_, byte)| !byte.is_ascii_digit())
    {
        let message = format!("a count has something else than an ASCII digit at its byte {at}");
        return Err(Error::new(Code::InvalidCount, message));
    }
    text.bytes()
        .try_fold(0_u64, |count, byte| {
            count.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
        })
        .ok_or_else(|| Error::new(Code::CountOverflow, "a count is above 2^64 - 1"))
}

/// The error of a sum that `u64` can't hold.
pub(crate) fn sum_overflow() -> Error {
    Error::new(
        Code::SumOverflow,
        "a sum of counts is above 2^64 - 1; ask for a shorter window",
    )
}
