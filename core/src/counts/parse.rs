//! Reads any count (the engine reads only counts that are certainly valid), and returns the errors for what the engine
//! refuses.

use tallyfold_engine::Refused;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::spelling::{Name, words};

/// Reads a count as the service sends it: a string of ASCII digits, leading zeros allowed.
///
/// # Errors
/// `invalid_count` and `count_overflow`, without a path or offset.
pub(crate) fn parse_count(text: &str) -> Result<u64> {
    if text.is_empty() {
        let message = "a count is an empty string; want ASCII digits";
        return Err(Error::new(Code::InvalidCount, message));
    }
    if let Some((at, _)) = text.bytes().enumerate().find(|(_, byte)| !byte.is_ascii_digit()) {
        let message = format!("byte {at} of a count is not an ASCII digit");
        return Err(Error::new(Code::InvalidCount, message));
    }
    text.bytes()
        .try_fold(0_u64, |count, byte| count.checked_mul(10)?.checked_add(u64::from(byte - b'0')))
        .ok_or_else(|| Error::new(Code::CountOverflow, "a count is above 2^64 - 1"))
}

/// The error for counts that were not added up.
pub(crate) fn refusal(refused: Refused) -> Error {
    match refused {
        Refused::SumOverflow => {
            let message = "a sum of counts is above 2^64 - 1; request a shorter window";
            Error::new(Code::SumOverflow, message)
        }
        Refused::TooManyGroups { limit } => {
            let message = format!("there are more than {limit} groups, which is the limit");
            Error::new(Code::GroupLimit, message)
        }
        Refused::TooManyBytes { limit } => {
            let message = words![
                format!("the groups take more than {limit} bytes, the limit "),
                Name::from("table_bytes"),
            ];
            Error::new(Code::GroupLimit, message)
        }
        Refused::OutOfMemory => Error::new(Code::OutOfMemory, "there is no memory for more groups"),
        Refused::Repeated => {
            let message = "this combination of dimension values stands in counts before; \
                           tolerate repeated_combination to add both up";
            Error::new(Code::RepeatedCombination, message)
        }
        Refused::DictionaryFull => {
            let message = "the distinct values of one dimension take more than 1 GiB";
            Error::new(Code::GroupLimit, message)
        }
    }
}
