//! How the counts of one group, or of all groups, changed from one table to another.

use std::fmt;

use serde::{Serialize, Serializer};
use tallyfold_engine::{Counts, quotient};

use crate::code::Code;
use crate::error::{Error, Result};

crate::names! {
    /// Which of two tables has a group. A table has a group even if all of its counts are 0.
    pub enum Presence {
        /// Both have it.
        Both = "both",
        /// Only the table after has it.
        New = "new",
        /// Only the table before has it.
        Vanished = "vanished",
    }
}

/// The count after minus the count before, for each of the three: from -(2^64 - 1) to 2^64 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Deltas {
    /// The change of events delivered.
    pub success: i128,
    /// The change of events not sent due to an error.
    pub errors: i128,
    /// The change of events filtered.
    pub filtered: i128,
}

impl Deltas {
    /// The three changes: of success, errors and filtered.
    #[must_use]
    pub fn each(self) -> [i128; 3] {
        [self.success, self.errors, self.filtered]
    }

    /// The three changes as signed 64-bit integers, which the columns of a data frame hold.
    ///
    /// # Errors
    /// `count_overflow` if a change is below -2^63 or above 2^63 - 1.
    pub fn signed(self) -> Result<[i64; 3]> {
        let too_large = |_| {
            let message = "a change is beyond a signed 64-bit integer, which this column holds; the rows have it \
                           exactly";
            Error::new(Code::CountOverflow, message)
        };
        let [success, errors, filtered] = self.each().map(i64::try_from);
        Ok([success.map_err(too_large)?, errors.map_err(too_large)?, filtered.map_err(too_large)?])
    }

    /// The digits of the three changes, with a `-` if a change is negative.
    pub(crate) fn digits(self) -> [Digits; 3] {
        self.each().map(|delta| Digits {
            sign: if delta < 0 { "-" } else { "" },
            // A difference of two counts has no more digits than a count.
            size: delta.unsigned_abs() as u64,
        })
    }

    pub(crate) fn between(before: Counts, after: Counts) -> Self {
        let delta = |before: u64, after: u64| i128::from(after) - i128::from(before);
        Self {
            success: delta(before.success, after.success),
            errors: delta(before.errors, after.errors),
            filtered: delta(before.filtered, after.filtered),
        }
    }
}

impl From<Counts> for Deltas {
    fn from(counts: Counts) -> Self {
        Self::between(Counts::default(), counts)
    }
}

/// A count or a difference of counts as a text of digits.
pub(crate) struct Digits {
    sign: &'static str,
    size: u64,
}

impl From<u64> for Digits {
    fn from(count: u64) -> Self {
        Self { sign: "", size: count }
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.sign, self.size)
    }
}

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of the change of each total that a group causes: the group's delta divided by the
/// total's delta.
///
/// A share is negative if the group changed in the opposite direction to the total; it may be above
/// 1 if other groups did. Apart from rounding, the shares of all groups add up to 1. If the total
/// did not change, the share is `None`, never 0, infinite or NaN. Each is the `f64` nearest to the
/// exact quotient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Shares {
    /// The part of the change of events delivered.
    pub success: Option<f64>,
    /// The part of the change of events not sent due to an error.
    pub errors: Option<f64>,
    /// The part of the change of events filtered.
    pub filtered: Option<f64>,
}

impl Shares {
    pub(crate) fn of(part: Deltas, total: Deltas) -> Self {
        Self {
            success: share(part.success, total.success),
            errors: share(part.errors, total.errors),
            filtered: share(part.filtered, total.filtered),
        }
    }
}

fn share(part: i128, total: i128) -> Option<f64> {
    let size = quotient(part.unsigned_abs(), total.unsigned_abs())?;
    // A share is never -0.
    let against = part != 0 && part.is_negative() != total.is_negative();
    Some(if against { -size } else { size })
}
