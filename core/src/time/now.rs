//! Time as an argument: the readings of the host's two clocks.

/// The readings of the host's two clocks at one moment.
///
/// The core has no clock of its own. Time is an argument, so a test of thirty days runs in a
/// millisecond. The clock that has moved further counts, because a monotonic clock may stop while
/// the computer sleeps, and a wall clock may be set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since any fixed moment, never running backwards.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970-01-01T00:00:00Z by the wall clock.
    pub unix_ms: i64,
}

impl Now {
    /// Milliseconds since `earlier` by the clock that moved further; 0 if neither moved forward.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        let monotonic = self.monotonic_ms.saturating_sub(earlier.monotonic_ms);
        let wall = self.unix_ms.saturating_sub(earlier.unix_ms);
        monotonic.max(u64::try_from(wall).unwrap_or(0))
    }
}
