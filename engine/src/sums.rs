//! Ids and counts by row, in half the memory that they could need.

use crate::counts::Counts;
use crate::rows::Key;

/// What was added up for each combination.
///
/// Nearly every number fits the low half of its bits. As long as all of them do, no row has high
/// halves: then twice as many rows are in a cache, and half as many pages are asked of the system.
#[derive(Debug)]
pub(crate) struct Sums {
    low: Vec<Half>,
    /// Of the first rows; those of all others are zero.
    high: Vec<Half>,
}

/// One half of each number of a row. No more than four bytes are in line, so that none are lost.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
struct Half {
    ids: u64,
    counts: [u32; 3],
}

/// The ids of a key: the low halves of all, and the high halves. In both, the first two columns have
/// the even places, and the other two the odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Sums {
    /// No rows, and room for so many.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            low: Vec::with_capacity(rows),
            high: Vec::new(),
        }
    }

    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        self.low.len()
    }

    /// The ids of a row.
    #[inline(always)]
    pub(crate) fn ids(&self, row: usize) -> Ids {
        Ids {
            low: self.low[row].ids,
            high: self.high(row).ids,
        }
    }

    /// Whether a row has these ids.
    #[inline(always)]
    pub(crate) fn is_of(&self, row: usize, ids: Ids) -> bool {
        // Where there is no high half at all, one comparison decides.
        let has_high = self.high.len() as u64 | ids.high != 0;
        self.low[row].ids == ids.low && (!has_high || self.high(row).ids == ids.high)
    }

    /// The counts of a row.
    #[inline(always)]
    pub(crate) fn counts(&self, row: usize) -> Counts {
        let (low, high) = (self.low[row].counts, self.high(row).counts);
        let whole = |count: usize| u64::from(low[count]) | u64::from(high[count]) << 32;
        Counts {
            success: whole(0),
            errors: whole(1),
            filtered: whole(2),
        }
    }

    /// Adds a row.
    #[inline(always)]
    pub(crate) fn push(&mut self, ids: Ids, counts: Counts) {
        if ids.high != 0 || !fits_low(counts) {
            self.set_high(self.low.len(), ids.high, counts);
        }
        self.low.push(Half {
            ids: ids.low,
            counts: low_halves(counts),
        });
    }

    /// Adds counts to a row, where the sums are known to fit.
    #[inline(always)]
    pub(crate) fn add(&mut self, row: usize, counts: Counts) {
        let low = &mut self.low[row];
        let [success, errors, filtered] = low.counts.map(u64::from);
        let mut sum = Counts {
            success,
            errors,
            filtered,
        };
        sum.add(counts);
        if fits_low(sum) {
            low.counts = low_halves(sum);
        } else {
            self.add_to_both(row, counts);
        }
    }

    #[cold]
    fn add_to_both(&mut self, row: usize, counts: Counts) {
        let mut sum = self.counts(row);
        sum.add(counts);
        self.low[row].counts = low_halves(sum);
        self.set_high(row, self.high(row).ids, sum);
    }

    #[inline(always)]
    fn high(&self, row: usize) -> Half {
        self.high.get(row).copied().unwrap_or_default()
    }

    #[cold]
    fn set_high(&mut self, row: usize, ids: u64, counts: Counts) {
        if self.high.len() <= row {
            self.high.resize(row + 1, Half::default());
        }
        let Counts {
            success,
            errors,
            filtered,
        } = counts;
        let counts = [success, errors, filtered].map(|count| (count >> 32) as u32);
        self.high[row] = Half { ids, counts };
    }
}

impl Ids {
    /// The places of the first two columns.
    const EVEN: u64 = 0x0000_FFFF_0000_FFFF;

    #[inline(always)]
    pub(crate) fn of(key: Key) -> Self {
        let [first, last] = [[key[0], key[1]], [key[2], key[3]]]
            .map(|[low, high]| u64::from(low) | u64::from(high) << 32);
        Self {
            low: first & Self::EVEN | (last & Self::EVEN) << 16,
            high: first >> 16 & Self::EVEN | last & !Self::EVEN,
        }
    }

    #[inline(always)]
    pub(crate) fn key(self) -> Key {
        let first = self.low & Self::EVEN | (self.high & Self::EVEN) << 16;
        let last = self.low >> 16 & Self::EVEN | self.high & !Self::EVEN;
        [first, first >> 32, last, last >> 32].map(|id| id as u32)
    }
}

#[inline(always)]
fn fits_low(counts: Counts) -> bool {
    (counts.success | counts.errors | counts.filtered) >> 32 == 0
}

#[inline(always)]
fn low_halves(counts: Counts) -> [u32; 3] {
    [counts.success, counts.errors, counts.filtered].map(|count| count as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_id() -> impl Strategy<Value = u32> {
        prop_oneof![0..4_u32, 0xFFFE..0x1_0002_u32, any::<u32>()]
    }

    /// So small that thousands of them fit.
    fn any_count() -> impl Strategy<Value = u64> {
        const HALF: u64 = 1 << 32;
        prop_oneof![8 => 0..9_u64, 1 => HALF - 2..HALF + 2, 1 => 0..1_u64 << 50]
    }

    fn any_counts() -> impl Strategy<Value = Counts> {
        [any_count(), any_count(), any_count()].prop_map(|[success, errors, filtered]| Counts {
            success,
            errors,
            filtered,
        })
    }

    proptest! {
        #[test]
        fn rows_are_as_they_were_pushed_and_added_to(
            pushed in prop::collection::vec(([any_id(), any_id(), any_id(), any_id()], any_counts()), 1..40),
            added in prop::collection::vec((any::<prop::sample::Index>(), any_counts()), 0..200),
        ) {
            let mut sums = Sums::with_capacity(0);
            let mut expected = pushed;
            for (key, counts) in &expected {
                sums.push(Ids::of(*key), *counts);
            }
            for (row, counts) in added {
                let row = row.index(expected.len());
                sums.add(row, counts);
                expected[row].1.add(counts);
            }
            prop_assert_eq!(sums.len(), expected.len());
            for (row, (key, counts)) in expected.into_iter().enumerate() {
                prop_assert_eq!(sums.ids(row), Ids::of(key));
                prop_assert!(sums.is_of(row, Ids::of(key)));
                for column in 0..key.len() {
                    for bit in [0, 15, 16, 31] {
                        let mut other = key;
                        other[column] ^= 1 << bit;
                        prop_assert!(!sums.is_of(row, Ids::of(other)));
                    }
                }
                prop_assert_eq!(sums.ids(row).key(), key);
                prop_assert_eq!(sums.counts(row), counts);
            }
        }
    }

    #[test]
    fn what_is_small_has_no_high_halves() {
        let mut sums = Sums::with_capacity(0);
        let most = Counts {
            success: u64::from(u32::MAX),
            ..Counts::default()
        };
        sums.push(Ids::of([0xFFFF; 4]), most);
        sums.add(0, Counts::default());
        assert!(sums.high.is_empty());
        sums.add(0, most);
        assert_eq!(sums.counts(0).success, 2 * most.success);
    }
}
