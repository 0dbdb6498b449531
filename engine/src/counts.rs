//! The three counts of an entry.

/// How many events were delivered, failed and were filtered (service reference 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
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

    /// The three counts, in the order of their names.
    #[must_use]
    pub const fn each(self) -> [u64; 3] {
        [self.success, self.errors, self.filtered]
    }

    /// Adds each count; `None` if a sum is above 2^64 - 1.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            success: self.success.checked_add(other.success)?,
            errors: self.errors.checked_add(other.errors)?,
            filtered: self.filtered.checked_add(other.filtered)?,
        })
    }

    /// Adds each count. The caller must know that no sum overflows.
    pub(crate) fn add(&mut self, other: Self) {
        self.success = self.success.wrapping_add(other.success);
        self.errors = self.errors.wrapping_add(other.errors);
        self.filtered = self.filtered.wrapping_add(other.filtered);
    }
}
