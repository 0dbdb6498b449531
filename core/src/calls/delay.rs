//! A wait that begins when its rest is first read.

use crate::time::now::Now;

/// A wait on the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Delay {
    /// There is nothing to wait for.
    #[default]
    Over,
    /// It takes this many milliseconds, which start at the next call of [`Delay::rest`].
    For(u64),
    /// It ends at that time of the monotonic clock.
    Until(u64),
}

impl Delay {
    /// How many milliseconds of it are left.
    pub(crate) fn rest(&mut self, now: Now) -> u64 {
        if let Self::For(milliseconds) = *self {
            *self = Self::Until(now.monotonic_ms.saturating_add(milliseconds));
        }
        match self {
            Self::Until(end) => end.saturating_sub(now.monotonic_ms),
            _ => 0,
        }
    }
}
