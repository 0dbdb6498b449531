//! The numbers that rules judge and that explanations explain.

use tallyfold::Counts;

tallyfold::names! {
    /// A number that is made from the three counts (service reference 2.3): a volume, or a rate.
    #[non_exhaustive]
    pub enum Measure {
        /// Events delivered.
        Success = "success",
        /// Events not sent due to an error.
        Errors = "errors",
        /// Events filtered from the stream.
        Filtered = "filtered",
        /// All events: delivered, failed and filtered.
        Events = "events",
        /// The share of attempts (delivered and failed) that failed.
        ErrorRate = "error_rate",
        /// The share of all events that was filtered.
        FilteredRate = "filtered_rate",
    }
}

/// Converts a sum of counts. A sum above `u64::MAX` becomes `u64::MAX`.
pub(crate) fn most(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

impl Measure {
    /// Returns whether the measure is a share of a whole.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::ErrorRate | Self::FilteredRate)
    }

    /// Returns the exact number of events that the measure counts; for a rate, its numerator.
    #[must_use]
    pub fn part(self, counts: Counts) -> u128 {
        match self {
            Self::Success => counts.success.into(),
            Self::Errors | Self::ErrorRate => counts.errors.into(),
            Self::Filtered | Self::FilteredRate => counts.filtered.into(),
            Self::Events => {
                u128::from(counts.success) + u128::from(counts.errors) + u128::from(counts.filtered)
            }
        }
    }

    /// Returns the number of events that a rate is a share of; `None` for a volume.
    #[must_use]
    pub fn whole(self, counts: Counts) -> Option<u128> {
        match self {
            Self::ErrorRate => Some(Self::Success.part(counts) + Self::Errors.part(counts)),
            Self::FilteredRate => Some(Self::Events.part(counts)),
            _ => None,
        }
    }
}
