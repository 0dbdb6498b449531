//! Limits how much load retries add to a service that is failing.

/// The credits that retries cost, in hundredths of a retry. A client starts with credits for ten
/// retries, and each call earns more, up to ten retries again.
///
/// However long a service is down, retries add at most 0.09 requests for each call, plus ten in
/// total. A collect may spend in advance what its further calls will earn. Then the credits are
/// below zero, and no call is retried until they are earned.
#[derive(Debug)]
pub(crate) struct Budget(i32);

const MOST: i32 = 1_000;
const EARNED_BY_CALL: i32 = 9;
/// This is less than other calls earn, because a long range also makes tries that the budget does not pay, at most one
/// in half a minute.
const EARNED_BY_PATIENT_CALL: i32 = 8;
const COST_OF_RETRY: i32 = 100;

impl Default for Budget {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Budget {
    /// Adds the credits of a call that has begun to send.
    pub(crate) fn earn(&mut self, is_patient: bool) {
        let earned = match is_patient {
            true => EARNED_BY_PATIENT_CALL,
            false => EARNED_BY_CALL,
        };
        self.0 = (self.0 + earned).min(MOST);
    }

    /// Whether there are enough credits for a retry.
    pub(crate) fn suffices(&self) -> bool {
        self.0 >= COST_OF_RETRY
    }

    /// Pays one retry; `false` if the credits are not enough.
    pub(crate) fn pay(&mut self) -> bool {
        let suffices = self.suffices();
        if suffices {
            self.0 -= COST_OF_RETRY;
        }
        suffices
    }

    /// Pays one retry with what this number of further patient calls will earn; `false` if that is not enough.
    pub(crate) fn borrow(&mut self, calls: u32) -> bool {
        // The limit is far more calls than any collect makes, and far from an overflow.
        let earned = EARNED_BY_PATIENT_CALL * calls.min(1 << 24) as i32;
        let suffices = self.0 - COST_OF_RETRY >= -earned;
        if suffices {
            self.0 -= COST_OF_RETRY;
        }
        suffices
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    /// How many retries can be paid, one after the other.
    fn payable(budget: &mut Budget) -> u32 {
        (0..).take_while(|_| budget.pay()).count() as u32
    }

    #[test]
    fn ten_retries_at_once_and_no_more() {
        let mut budget = Budget::default();
        assert_eq!(payable(&mut budget), 10);
        assert!(!budget.suffices() && !budget.pay());
    }

    #[test]
    fn twelve_calls_earn_a_retry_and_eleven_do_not() {
        let mut budget = Budget::default();
        payable(&mut budget);
        (0..11).for_each(|_| budget.earn(false));
        assert_eq!(payable(&mut budget), 0);
        budget.earn(false);
        assert_eq!(payable(&mut budget), 1);
    }

    #[test]
    fn what_will_be_earned_can_be_spent_once() {
        let mut budget = Budget::default();
        assert_eq!((0..).take_while(|_| budget.borrow(100)).count(), 18);
        assert!(!budget.suffices() && !budget.borrow(0));
        (0..100).for_each(|_| budget.earn(true));
        assert_eq!(payable(&mut budget), 0);
        (0..13).for_each(|_| budget.earn(true));
        assert_eq!(payable(&mut budget), 1);
    }

    #[test]
    fn what_is_earned_is_kept_up_to_ten() {
        let mut budget = Budget::default();
        (0..100_000).for_each(|_| budget.earn(false));
        assert_eq!(payable(&mut budget), 10);
        (0..100_000).for_each(|_| budget.earn(false));
        assert_eq!(payable(&mut budget), 10);
    }
}
