//! Time as an argument: what the host's two clocks say.

/// What the host's two clocks say at one moment.
///
/// The core has no clock of its own. Passing time in lets a test of thirty days run in a
/// millisecond, and lets the larger elapsed time of the two clocks win: a monotonic clock may
/// stand still while the machine sleeps, a wall clock may be set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since any fixed moment, never running backwards.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970-01-01T00:00:00Z, as the wall clock has it.
    pub unix_ms: i64,
}

impl Now {
    /// Milliseconds since `earlier` by the clock that moved further; 0 when neither moved forward.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        let monotonic = self.monotonic_ms.saturating_sub(earlier.monotonic_ms);
        let wall = self.unix_ms.saturating_sub(earlier.unix_ms);
        monotonic.max(u64::try_from(wall).unwrap_or(0))
    }
}
