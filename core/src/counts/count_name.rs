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

crate::options! {
    /// The options of `top`.
    #[derive(Clone, Copy, Debug)]
    pub struct TopOptions {
        /// At most how many rows.
        n: usize,
        /// The count to rank by.
        by: CountName = CountName::Errors,
    }
}
