//! The two clocks of this machine.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tallyfold::Now;

/// Reads both clocks. The monotonic clock starts at 0 when this is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Starts the monotonic clock at 0.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time now.
    pub(crate) fn now(self) -> Now {
        Now {
            monotonic_ms: u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: unix_ms(),
        }
    }
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn unix_ms() -> i64 {
    let ms = |elapsed: std::time::Duration| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}
