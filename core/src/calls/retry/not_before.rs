//! The earliest moment for the next request.

use crate::time::now::Now;

/// The pause that the service has requested for one kind of request.
///
/// It uses only the monotonic clock, so a jump of the wall clock does not shorten a wait.
#[derive(Debug, Default)]
pub(crate) struct NotBefore {
    /// A wait that starts when `rest` is called next, because the time of the response is not known.
    asked_ms: u64,
    /// The latest time at which the response with this wait can have come.
    latest_ms: u64,
    until_ms: u64,
}

impl NotBefore {
    /// Records a wait that the service has just requested, in a response that came before the monotonic time `latest_ms`.
    pub(crate) fn raise(&mut self, milliseconds: u64, latest_ms: u64) {
        self.asked_ms = self.asked_ms.max(milliseconds);
        self.latest_ms = self.latest_ms.max(latest_ms);
    }

    /// How long to wait from now on; 0 if the wait is over. A wait starts when this is first called after the response, or at
    /// the latest time at which the response can have come: no call may follow for hours.
    pub(crate) fn rest(&mut self, now: Now) -> u64 {
        let asked_ms = std::mem::take(&mut self.asked_ms);
        if asked_ms > 0 {
            let start_ms = now.monotonic_ms.min(self.latest_ms);
            self.until_ms = self.until_ms.max(start_ms.saturating_add(asked_ms));
            self.latest_ms = 0;
        }
        self.until_ms.saturating_sub(now.monotonic_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::NotBefore;
    use crate::time::now::Now;

    fn at(monotonic_ms: u64) -> Now {
        Now { monotonic_ms, unix_ms: 0 }
    }

    #[test]
    fn it_counts_from_when_it_is_first_asked_for() {
        let mut moment = NotBefore::default();
        assert_eq!(moment.rest(at(5)), 0);
        moment.raise(1_000, u64::MAX);
        moment.raise(300, u64::MAX);
        assert_eq!(moment.rest(at(7_000)), 1_000);
        assert_eq!(moment.rest(at(7_999)), 1);
        assert_eq!(moment.rest(at(8_000)), 0);
    }

    #[test]
    fn it_counts_from_the_latest_time_of_the_response_if_nobody_asks_before() {
        let mut moment = NotBefore::default();
        moment.raise(1_000, 5_000);
        assert_eq!(moment.rest(at(5_400)), 600);
        moment.raise(1_000, 5_500);
        assert_eq!(moment.rest(at(3_600_000)), 0);
    }

    #[test]
    fn a_later_word_of_the_service_never_shortens_it() {
        let mut moment = NotBefore::default();
        moment.raise(1_000, u64::MAX);
        assert_eq!(moment.rest(at(0)), 1_000);
        moment.raise(10, u64::MAX);
        assert_eq!(moment.rest(at(100)), 900);
        moment.raise(u64::MAX, u64::MAX);
        assert_eq!(moment.rest(at(200)), u64::MAX - 200);
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_nothing() {
        let mut moment = NotBefore::default();
        moment.raise(1_000, u64::MAX);
        assert_eq!(moment.rest(at(0)), 1_000);
        let unix_ms = 86_400_000;
        assert_eq!(moment.rest(Now { unix_ms, ..at(1) }), 999);
    }
}
