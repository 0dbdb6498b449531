//! The three counts, by name.

use tallyfold_engine::Counts;

crate::names! {
    /// The name of one of the three counts (service reference 2.3).
    pub enum CountName {
        /// Events delivered.
        Success = "success",
        /// Events not sent due to an error.
        Errors = "errors",
        /// Events filtered from the stream.
        Filtered = "filtered",
    }
}

impl CountName {
    /// The count of that name.
    #[must_use]
    pub const fn of(self, counts: Counts) -> u64 {
        match self {
            Self::Success => counts.success,
            Self::Errors => counts.errors,
            Self::Filtered => counts.filtered,
        }
    }
}

crate::names! {
    /// What rows are ranked by.
    #[non_exhaustive]
    pub enum RankBy {
        /// Events delivered.
        Success = "success",
        /// Events not sent due to an error.
        Errors = "errors",
        /// Events filtered from the stream.
        Filtered = "filtered",
        /// Events that were not delivered: errors and filtered together.
        Undelivered = "undelivered",
        /// The share of errors in the events that were to be sent: of success and errors.
        ErrorRate = "error_rate",
        /// The share of filtered in all events.
        FilteredRate = "filtered_rate",
    }
}

impl RankBy {
    /// The rank of these counts: the count, or the rate in units of 2^-64. Rates of counts below 2^32 that differ have
    /// different ranks. Without events, a rate ranks as 0.
    #[must_use]
    pub fn rank(self, [success, errors, filtered]: [u128; 3]) -> u128 {
        let rate = |part: u128, whole: u128| (part << 64).checked_div(whole).unwrap_or(0);
        match self {
            Self::Success => success,
            Self::Errors => errors,
            Self::Filtered => filtered,
            Self::Undelivered => errors + filtered,
            Self::ErrorRate => rate(errors, success + errors),
            Self::FilteredRate => rate(filtered, success + errors + filtered),
        }
    }

    /// The count that it is about.
    #[must_use]
    pub const fn count(self) -> CountName {
        match self {
            Self::Success => CountName::Success,
            Self::Errors | Self::Undelivered | Self::ErrorRate => CountName::Errors,
            Self::Filtered | Self::FilteredRate => CountName::Filtered,
        }
    }

    /// The rank of a row's counts.
    pub(crate) fn of(self, counts: Counts) -> u128 {
        self.rank([counts.success, counts.errors, counts.filtered].map(u128::from))
    }
}

impl From<CountName> for RankBy {
    fn from(name: CountName) -> Self {
        match name {
            CountName::Success => Self::Success,
            CountName::Errors => Self::Errors,
            CountName::Filtered => Self::Filtered,
        }
    }
}

crate::options! {
    /// The options of `top`.
    #[derive(Clone, Copy, Debug)]
    pub struct TopOptions {
        /// At most how many rows.
        n: usize,
        /// The count or rate to rank by.
        by: RankBy = RankBy::Errors,
    }
}
