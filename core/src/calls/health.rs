//! How a service has responded lately: whether it is down, and whether it has responded since.

use crate::error::Error;

/// A service counts as down after this many temporary failures in a row. It is then useless to retry a request at once.
const DOWN: u32 = 3;
/// After this many failures in a row, requests for other windows would fail, too. Fewer may be due to a few windows.
pub(crate) const GONE: u32 = 8;

/// How one destination of requests has responded lately. Failures are numbered. A response shows that
/// the service was up after the failures that had happened when its request was sent, but not after
/// later ones.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// The number of the last failure.
    failed: u64,
    /// Its error.
    error: Option<Error>,
    /// How many failures had happened when the latest request that was answered was sent.
    answered_after: u64,
    /// How many requests have failed since a response showed that the service was up.
    in_a_row: u32,
}

impl Health {
    /// Records the failure with that number.
    pub(super) fn fail(&mut self, number: u64, error: &Error) {
        self.failed = number;
        self.error = Some(error.clone());
        self.in_a_row += 1;
    }

    /// Records the response to a request that was sent after this number of failures.
    pub(super) fn answer(&mut self, sent_after: u64) {
        self.answered_after = self.answered_after.max(sent_after);
        if sent_after >= self.failed {
            self.in_a_row = 0;
        }
    }

    /// Records that the service itself has shown that it is down, by requesting a long wait.
    pub(super) fn believe_down(&mut self) {
        self.in_a_row = self.in_a_row.max(DOWN);
    }

    pub(super) fn is_down(&self) -> bool {
        self.in_a_row >= DOWN
    }

    /// Records that every other request would fail, too.
    pub(super) fn believe_gone(&mut self) {
        self.in_a_row = self.in_a_row.max(GONE);
    }

    /// The error of the last failure, if every other request would fail, too.
    pub(super) fn gone(&self) -> Option<&Error> {
        self.error.as_ref().filter(|_| self.in_a_row >= GONE)
    }

    /// Whether the service has answered a request that was sent after that failure.
    pub(super) fn answered_since(&self, failure: u64) -> bool {
        self.answered_after >= failure
    }

    /// The number of the last failure.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::Health;
    use crate::code::Code;
    use crate::error::Error;

    #[test]
    fn an_answer_proves_nothing_about_failures_after_its_request() {
        let mut health = Health::default();
        let error = Error::new(Code::NetworkFailed, "");
        (1..=3).for_each(|number| health.fail(number, &error));
        health.answer(0);
        assert!(health.is_down() && !health.answered_since(1));
        health.answer(2);
        assert!(health.is_down() && health.answered_since(2) && !health.answered_since(3));
        health.answer(3);
        assert!(!health.is_down() && health.answered_since(3));
    }
}
