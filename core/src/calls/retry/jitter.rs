//! Computes how long to wait before a retry, so that many clients that failed at the same moment
//! don't retry together.

/// The backoff of the first retry; each later one is twice as long. Half of each backoff is random.
const FIRST_BACKOFF_MS: u64 = 500;

const LONGEST_BACKOFF_MS: u64 = 30_000;

/// The longest backoff of a collect or follow that waits for a service that is down.
const LONGEST_PAUSE_MS: u64 = 60_000;

/// A stream of random numbers (splitmix64): the same seed gives the same waits.
#[derive(Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// A stream that begins at a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The wait in milliseconds before a retry, numbered from 1: half of the backoff plus a random
    /// part of up to the other half ("equal jitter").
    ///
    /// If the service has requested a wait, `floor_ms`, and it is longer than half of the backoff,
    /// the random part is added to that wait, so that clients with the same response don't retry
    /// together.
    pub(crate) fn wait_ms(&mut self, retry: u32, longest_ms: u64, floor_ms: u64) -> u64 {
        let backoff_ms = doubled(retry).min(LONGEST_BACKOFF_MS).min(longest_ms);
        self.around(backoff_ms, floor_ms)
    }

    /// The same for the next try, numbered from 1, of a collect or follow that waits for a service
    /// that is down. However short the waits of calls may be, the backoff is half a second or more,
    /// because there may be many tries. It is a minute for a try that the retry budget does not
    /// pay.
    pub(crate) fn pause_ms(
        &mut self,
        number: u32,
        longest_ms: u64,
        paid: bool,
        floor_ms: u64,
    ) -> u64 {
        let backoff_ms = match paid {
            true => doubled(number).min(longest_ms.max(FIRST_BACKOFF_MS)),
            false => LONGEST_PAUSE_MS,
        };
        self.around(backoff_ms.min(LONGEST_PAUSE_MS), floor_ms)
    }

    fn around(&mut self, backoff_ms: u64, floor_ms: u64) -> u64 {
        let half = backoff_ms / 2;
        // A service may request any wait.
        half.max(floor_ms).saturating_add(self.next() % (half + 1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

fn doubled(number: u32) -> u64 {
    FIRST_BACKOFF_MS << number.saturating_sub(1).min(10)
}

#[cfg(test)]
mod tests {
    use super::Jitter;

    const NEVER_MS: u64 = u64::MAX;

    fn range(retry: u32, longest_ms: u64, floor_ms: u64) -> (u64, u64) {
        let mut jitter = Jitter::new(7);
        let waits: Vec<u64> =
            (0..200_000).map(|_| jitter.wait_ms(retry, longest_ms, floor_ms)).collect();
        let ends = (waits.iter().min(), waits.iter().max());
        (*ends.0.unwrap_or(&0), *ends.1.unwrap_or(&0))
    }

    #[test]
    fn half_of_each_backoff_is_random() {
        assert_eq!(range(1, NEVER_MS, 0), (250, 500));
        assert_eq!(range(2, NEVER_MS, 0), (500, 1_000));
        assert_eq!(range(3, NEVER_MS, 0), (1_000, 2_000));
        for retry in [7, 8, 64, u32::MAX] {
            let (least, most) = range(retry, NEVER_MS, 0);
            assert!((15_000..15_010).contains(&least), "{least}");
            assert!((29_990..=30_000).contains(&most), "{most}");
        }
    }

    #[test]
    fn what_the_service_asked_for_is_waited_before_the_random_part() {
        assert_eq!(range(1, NEVER_MS, 7_000), (7_000, 7_250));
        assert_eq!(range(1, NEVER_MS, 100), (250, 500));
    }

    #[test]
    fn no_wait_of_our_own_is_above_the_longest() {
        assert_eq!(range(5, 100, 0), (50, 100));
        assert_eq!(range(5, 0, 0), (0, 0));
    }

    #[test]
    fn a_pause_is_up_to_a_minute_and_never_too_short() {
        let pause = |number, longest_ms, paid| {
            let mut jitter = Jitter::new(7);
            let waits = (0..200_000).map(|_| jitter.pause_ms(number, longest_ms, paid, 0));
            waits.fold((u64::MAX, 0), |(least, most), ms| (least.min(ms), most.max(ms)))
        };
        assert_eq!(pause(1, NEVER_MS, true), (250, 500));
        assert_eq!(pause(9, 0, true), (250, 500));
        assert_eq!(pause(3, 1_000, true), (500, 1_000));
        for (number, paid) in [(8, true), (u32::MAX, true), (1, false)] {
            let (least, most) = pause(number, NEVER_MS, paid);
            assert!((30_000..30_010).contains(&least), "{least}");
            assert!((59_990..=60_000).contains(&most), "{most}");
        }
        assert_eq!(Jitter::new(7).pause_ms(1, 0, true, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_seed_gives_its_own_waits_each_time() {
        let waits = |seed| {
            let mut jitter = Jitter::new(seed);
            [1, 2, 3, 4, 5].map(|retry| jitter.wait_ms(retry, NEVER_MS, 0))
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }
}
