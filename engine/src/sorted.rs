//! Rows that come sorted, with ids in dictionaries that may have more values than they use.

use std::sync::Arc;

use crate::counts::Counts;
use crate::dictionary::Dictionary;
use crate::rows::{Refused, Rows};

impl Rows {
    /// Rows from sorted dictionaries, the ids of each column, and the counts. Each id must be below the length of its
    /// column's dictionary. The rows must be sorted and distinct, and all columns must have the same length.
    ///
    /// # Errors
    /// [`Refused::SumOverflow`].
    pub fn of_sorted(
        dictionaries: &[Arc<Dictionary>],
        ids: &[&[u32]],
        counts: impl Iterator<Item = Counts>,
    ) -> Result<Self, Refused> {
        let mut rows = Self::default();
        for (dictionary, ids) in dictionaries.iter().zip(ids) {
            let (used, new_ids) = dictionary.used_by(ids.iter().copied());
            rows.dictionaries.push(used);
            rows.ids.push(ids.iter().map(|id| new_ids[*id as usize]).collect());
        }
        for counts in counts {
            let totals = rows.totals.checked_add(counts);
            rows.totals = totals.ok_or(Refused::SumOverflow)?;
            rows.success.push(counts.success);
            rows.errors.push(counts.errors);
            rows.filtered.push(counts.filtered);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(success: u64) -> Counts {
        Counts { success, errors: 1, filtered: 2 }
    }

    #[test]
    fn they_are_those_that_any_order_gives() {
        let values = Arc::new(Dictionary::of_sorted(["a", "b", "c", "d"].into_iter()).unwrap());
        let dictionaries = [Arc::clone(&values), values];
        let ids: [&[u32]; 2] = [&[1, 1, 3], &[0, 2, 0]];
        let rows = Rows::of_sorted(&dictionaries, &ids, (1..4).map(counts)).unwrap();
        let columns = [vec!["d", "b", "b"], vec!["a", "c", "a"]];
        let expected = Rows::from_values(&columns, &[3, 2, 1].map(counts)).unwrap();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_sum_that_is_too_large_is_refused() {
        let most = [u64::MAX, 1].map(counts);
        let refused = Rows::of_sorted(&[], &[], most.into_iter());
        assert_eq!(refused, Err(Refused::SumOverflow));
    }
}
