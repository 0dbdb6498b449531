//! The earliest moment for the next request.

use crate::time::now::Now;

/// The pause that the service has requested for one kind of request.
///
/// It uses only the monotonic clock, so a jump of the wall clock does not shorten a wait.
#[derive(Debug, Default)]
pub(crate) struct NotBefore {
    /// A wait that starts when `rest` is called next, because the time is not known before.
    asked_ms: u64,
    until_ms: u64,
}

impl NotBefore {
    /// Records a wait that the service has just requested.
    pub(crate) fn raise(&mut self, milliseconds: u64) {
        self.asked_ms = self.asked_ms.max(milliseconds);
    }

    /// How long to wait from now on; 0 if the wait is over. A wait starts when this is first called
    /// after the response, never earlier.
    pub(crate) fn rest(&mut self, now: Now) -> u64 {
        let asked_ms = std::mem::take(&mut self.asked_ms);
        if asked_ms > 0 {
            let until = now.monotonic_ms.saturating_add(asked_ms);
            self.until_ms = self.until_ms.max(until);
        }
        self.until_ms.saturating_sub(now.monotonic_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::NotBefore;
    use crate::time::now::Now;

    fn at(monotonic_ms: u64) -> Now {
        Now {
            monotonic_ms,
            unix_ms: 0,
        }
    }

    #[test]
    fn it_counts_from_when_it_is_first_asked_for() {
        let mut moment = NotBefore::default();
        assert_eq!(moment.rest(at(5)), 0);
        moment.raise(1_000);
        moment.raise(300);
        assert_eq!(moment.rest(at(7_000)), 1_000);
        assert_eq!(moment.rest(at(7_999)), 1);
        assert_eq!(moment.rest(at(8_000)), 0);
    }

    #[test]
    fn a_later_word_of_the_service_never_shortens_it() {
        let mut moment = NotBefore::default();
        moment.raise(1_000);
        assert_eq!(moment.rest(at(0)), 1_000);
        moment.raise(10);
        assert_eq!(moment.rest(at(100)), 900);
        moment.raise(u64::MAX);
        assert_eq!(moment.rest(at(200)), u64::MAX - 200);
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_nothing() {
        let mut moment = NotBefore::default();
        moment.raise(1_000);
        assert_eq!(moment.rest(at(0)), 1_000);
        let unix_ms = 86_400_000;
        assert_eq!(moment.rest(Now { unix_ms, ..at(1) }), 999);
    }
}
