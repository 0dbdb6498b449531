//! Whether the totals that the service reports are the sums of its counts.

use serde::Serialize;
use tallyfold_engine::Counts;

use super::part::Part;

/// Whether the totals that the service reports are the sums of its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub enum Reconciliation {
    /// Each total is the sum of its counts.
    Balanced,
    /// At least one total differs. The fields are the reported total minus the sum, for each count.
    Unbalanced {
        /// Of events delivered.
        success: i128,
        /// Of events not sent due to an error.
        errors: i128,
        /// Of events filtered.
        filtered: i128,
    },
    /// The table was filtered, so its rows can't be compared with the totals of all events.
    Unavailable,
}

impl Reconciliation {
    /// Compares what the parts reported with the sum of all rows.
    pub(crate) fn of(parts: &[Part], totals: Counts) -> Self {
        let Some([success, errors, filtered]) = reported_sums(parts) else {
            return Self::Unavailable;
        };
        let [success, errors, filtered] = [
            success - i128::from(totals.success),
            errors - i128::from(totals.errors),
            filtered - i128::from(totals.filtered),
        ];
        if [success, errors, filtered] == [0; 3] {
            return Self::Balanced;
        }
        Self::Unbalanced { success, errors, filtered }
    }
}

/// The reported totals of all parts, added up, if each part still has them. This can't overflow,
/// because memory can't hold that many `u64`.
pub(crate) fn reported_sums(parts: &[Part]) -> Option<[i128; 3]> {
    parts.iter().try_fold([0; 3], |sums: [i128; 3], part| {
        let [a, b, c] = part.reported?.each().map(i128::from);
        Some([sums[0] + a, sums[1] + b, sums[2] + c])
    })
}
