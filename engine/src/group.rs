//! Makes rows from sums, and from other rows: regrouped, filtered or added up. It works on ids; no
//! string is hashed.

use std::sync::Arc;

use crate::cells::Cells;
use crate::counts::Counts;
use crate::dictionary::Dictionary;
use crate::key::Key;
use crate::order::{Packing, Sorted};
use crate::rows::{Refused, Rows, Sum};

/// The sums of one combination, and from how many rows they were added up.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    sum: Counts,
    rows: u64,
}

impl Rows {
    /// Rows from sums in any order, with new ids. The totals must not overflow, and each dictionary
    /// must be sorted and without unused values.
    pub(crate) fn from_sums(
        dictionaries: Vec<Arc<Dictionary>>,
        sums: &[Sum],
        new_ids: &[Vec<u32>],
        totals: Counts,
    ) -> Self {
        let key =
            |sum: &Sum| key_of(sum.key.iter().zip(new_ids).map(|(id, new)| new[*id as usize]));
        let keys = sums.iter().map(key).collect();
        let (rows, _) = Self::from_keys(dictionaries, keys, &|row| sums[row].counts, totals);
        rows
    }

    /// Rows from ids and counts in any order; counts with equal ids are added up. The totals must
    /// not overflow, and each dictionary must be sorted and without unused values. The second result
    /// is a row with the same ids as an earlier row, if there is one. This function is compiled once.
    fn from_keys(
        dictionaries: Vec<Arc<Dictionary>>,
        keys: Vec<Key>,
        counts: &dyn Fn(usize) -> Counts,
        totals: Counts,
    ) -> (Self, Option<usize>) {
        let mut sorted = Packing::of(&dictionaries).sort(keys.into_iter());
        let mut columns = CountColumns::with_capacity(sorted.len());
        let mut repeated = None;
        sorted.visit(counts, |row, counts, is_new| {
            if is_new {
                columns.push(counts);
            } else {
                columns.add_to_last(counts);
                repeated = repeated.or(Some(row));
            }
        });
        if columns.success.len() < sorted.len() {
            sorted.dedup();
            columns.shrink();
        }
        (columns.into_rows(dictionaries, &sorted, totals), repeated)
    }

    /// Rows from values in any order: each column's values, and the counts.
    ///
    /// # Errors
    /// [`Refused::SumOverflow`] and [`Refused::Repeated`] with a row, and [`Refused::DictionaryFull`].
    pub fn from_values(columns: &[Vec<&str>], counts: &[Counts]) -> Result<Self, (usize, Refused)> {
        let mut totals = Counts::default();
        for (row, counts) in counts.iter().enumerate() {
            let sum = totals.checked_add(*counts);
            totals = sum.ok_or((row, Refused::SumOverflow))?;
        }
        let mut dictionaries = Vec::with_capacity(columns.len());
        let mut ids = Vec::with_capacity(columns.len());
        for values in columns {
            let column = Dictionary::of_unsorted(values, (0, 0));
            let (dictionary, column) = column.ok_or((0, Refused::DictionaryFull))?;
            dictionaries.push(dictionary);
            ids.push(column);
        }
        let keys = (0..counts.len()).map(|row| key_of(ids.iter().map(|ids| ids[row])));
        match Self::from_keys(dictionaries, keys.collect(), &|row| counts[row], totals) {
            (_, Some(row)) => Err((row, Refused::Repeated)),
            (rows, None) => Ok(rows),
        }
    }

    /// Adds rows up by the given columns, in that order.
    #[must_use]
    pub fn regroup(&self, columns: &[usize]) -> Self {
        let kept = |column: &usize| Arc::clone(&self.dictionaries[*column]);
        let dictionaries: Vec<_> = columns.iter().map(kept).collect();
        match Cells::of(&dictionaries, self.len()) {
            Some(cells) => self.regroup_in_cells(dictionaries, columns, cells),
            None => {
                let key = |row| key_of(columns.iter().map(|column| self.ids[*column][row]));
                let keys = (0..self.len()).map(key).collect();
                let counts = |row| self.counts(row);
                let (rows, _) = Self::from_keys(dictionaries, keys, &counts, self.totals);
                rows
            }
        }
    }

    /// The same, with a cell for every possible combination of values.
    fn regroup_in_cells(
        &self,
        dictionaries: Vec<Arc<Dictionary>>,
        columns: &[usize],
        cells: Cells,
    ) -> Self {
        let mut sums = vec![Cell::default(); cells.len()];
        match columns {
            [only] => self.add_to_cells(&mut sums, self.ids[*only].iter().copied()),
            [first, second] => {
                let ids = self.ids[*first].iter().zip(&self.ids[*second]);
                let cell = ids.map(|(first, second)| cells.at([*first, *second].into_iter()));
                self.add_to_cells(&mut sums, cell);
            }
            _ => {
                let ids = |row| columns.iter().map(move |column| self.ids[*column][row]);
                let cell = |row| cells.at(ids(row));
                self.add_to_cells(&mut sums, (0..self.len()).map(cell));
            }
        }
        Self::from_cells(dictionaries, cells, &sums, self.totals)
    }

    /// Adds each row to a cell.
    #[inline]
    fn add_to_cells(&self, sums: &mut [Cell], cell_of_rows: impl Iterator<Item = u32>) {
        let counts = self.success.iter().zip(&self.errors).zip(&self.filtered);
        for (cell, ((success, errors), filtered)) in cell_of_rows.zip(counts) {
            let cell = &mut sums[cell as usize];
            cell.sum.add(Counts { success: *success, errors: *errors, filtered: *filtered });
            cell.rows += 1;
        }
    }

    /// A row for each cell to which a row was added.
    fn from_cells(
        dictionaries: Vec<Arc<Dictionary>>,
        cells: Cells,
        sums: &[Cell],
        totals: Counts,
    ) -> Self {
        let mut rows = Self::empty(dictionaries, totals);
        let there = sums.iter().zip(0..).filter(|(cell, _)| cell.rows > 0);
        for (Cell { sum, .. }, cell) in there {
            rows.push(cells.key(cell), *sum);
        }
        rows
    }

    /// The rows whose ids are all wanted. `wanted` has, for each column, whether each id is wanted;
    /// `None` means that all are.
    #[must_use]
    pub fn filter(&self, wanted: &[Option<Vec<bool>>]) -> Self {
        let is_wanted = |row: &usize| {
            let mut columns = wanted.iter().zip(&self.ids);
            columns.all(|(wanted, ids)| {
                wanted.as_ref().is_none_or(|wanted| wanted[ids[*row] as usize])
            })
        };
        let kept: Vec<u32> = (0..self.len()).filter(is_wanted).map(|row| row as u32).collect();
        let mut counts = kept.iter().map(|row| self.counts(*row as usize));
        self.select(&kept, &mut counts)
    }

    /// Rows with the values of some of these rows, in the same order, and with other counts. The totals must
    /// not overflow. This function is compiled once for all kinds of iterators.
    pub(crate) fn select(&self, kept: &[u32], counts: &mut dyn Iterator<Item = Counts>) -> Self {
        let mut rows = Self::empty(Vec::new(), Counts::default());
        for (dictionary, ids) in self.dictionaries.iter().zip(&self.ids) {
            let of = |row: &u32| ids[*row as usize];
            let (dictionary, new_ids) = dictionary.used_by(kept.iter().map(of));
            rows.dictionaries.push(dictionary);
            rows.ids.push(kept.iter().map(|row| new_ids[of(row) as usize]).collect());
        }
        for counts in counts {
            rows.totals.add(counts);
            rows.push_counts(counts);
        }
        rows
    }

    /// Adds up rows of the same columns.
    ///
    /// # Errors
    /// [`Refused::SumOverflow`], and [`Refused::DictionaryFull`].
    pub fn combine(all: &[&Self], width: usize) -> Result<Self, Refused> {
        let totals = all
            .iter()
            .try_fold(Counts::default(), |sum, rows| sum.checked_add(rows.totals))
            .ok_or(Refused::SumOverflow)?;
        let mut dictionaries = Vec::with_capacity(width);
        let mut new_ids = Vec::with_capacity(width);
        for column in 0..width {
            let each: Vec<_> = all.iter().map(|rows| &rows.dictionaries[column]).collect();
            let (dictionary, ids) = Dictionary::union(&each).ok_or(Refused::DictionaryFull)?;
            dictionaries.push(dictionary);
            new_ids.push(ids);
        }
        let ids = |part: usize, row: usize| {
            let columns = all[part].ids.iter().zip(&new_ids);
            columns.map(move |(ids, new)| new[part][ids[row] as usize])
        };
        let len = all.iter().map(|rows| rows.len()).sum();
        if let Some(cells) = Cells::of(&dictionaries, len) {
            let mut sums = vec![Cell::default(); cells.len()];
            for (part, rows) in all.iter().enumerate() {
                let cell = |row| cells.at(ids(part, row));
                rows.add_to_cells(&mut sums, (0..rows.len()).map(cell));
            }
            return Ok(Self::from_cells(dictionaries, cells, &sums, totals));
        }
        let mut keys = Vec::with_capacity(len);
        let mut counts = Vec::with_capacity(len);
        for (part, rows) in all.iter().enumerate() {
            for row in 0..rows.len() {
                keys.push(key_of(ids(part, row)));
                counts.push(rows.counts(row));
            }
        }
        let (rows, _) = Self::from_keys(dictionaries, keys, &|row| counts[row], totals);
        Ok(rows)
    }

    fn empty(dictionaries: Vec<Arc<Dictionary>>, totals: Counts) -> Self {
        Self { ids: vec![Vec::new(); dictionaries.len()], dictionaries, totals, ..Self::default() }
    }

    #[inline(always)]
    fn push(&mut self, key: Key, counts: Counts) {
        for (ids, id) in self.ids.iter_mut().zip(key) {
            ids.push(id);
        }
        self.push_counts(counts);
    }

    fn push_counts(&mut self, counts: Counts) {
        self.success.push(counts.success);
        self.errors.push(counts.errors);
        self.filtered.push(counts.filtered);
    }
}

/// Makes a key from the ids of a row.
#[inline]
fn key_of(ids: impl Iterator<Item = u32>) -> Key {
    let mut key = Key::default();
    key.iter_mut().zip(ids).for_each(|(place, id)| *place = id);
    key
}

/// Columns of counts that are being built.
struct CountColumns {
    success: Vec<u64>,
    errors: Vec<u64>,
    filtered: Vec<u64>,
}

impl CountColumns {
    fn with_capacity(rows: usize) -> Self {
        let column = || Vec::with_capacity(rows);
        Self { success: column(), errors: column(), filtered: column() }
    }

    #[inline]
    fn push(&mut self, counts: Counts) {
        self.success.push(counts.success);
        self.errors.push(counts.errors);
        self.filtered.push(counts.filtered);
    }

    #[inline]
    fn add_to_last(&mut self, counts: Counts) {
        let columns = [&mut self.success, &mut self.errors, &mut self.filtered];
        let counts = [counts.success, counts.errors, counts.filtered];
        for (column, count) in columns.into_iter().zip(counts) {
            if let Some(sum) = column.last_mut() {
                *sum = sum.wrapping_add(count);
            }
        }
    }

    fn into_rows(
        self,
        dictionaries: Vec<Arc<Dictionary>>,
        sorted: &Sorted,
        totals: Counts,
    ) -> Rows {
        Rows {
            ids: (0..dictionaries.len()).map(|column| sorted.ids(column)).collect(),
            dictionaries,
            success: self.success,
            errors: self.errors,
            filtered: self.filtered,
            totals,
        }
    }

    /// Frees the memory of rows that were added to other rows.
    fn shrink(&mut self) {
        let columns = [&mut self.success, &mut self.errors, &mut self.filtered];
        columns.into_iter().for_each(Vec::shrink_to_fit);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::HashKeys;
    use crate::rows::{Added, RowsBuilder};
    use proptest::prelude::*;

    type Plain = BTreeMap<Vec<String>, [u64; 3]>;

    /// Three columns of up to `values` values each. With few values, there is a cell for each
    /// combination; with many, rows are sorted.
    fn any_rows(values: u32) -> impl Strategy<Value = Plain> {
        let value = (0..values).prop_map(|value| format!("{value:x}"));
        let key = prop::collection::vec(value, 3);
        let counts = prop::array::uniform3(0..1_u64 << 40);
        prop::collection::btree_map(key, counts, 0..400)
    }

    fn rows(plain: &Plain) -> Rows {
        let column = |column: usize| plain.keys().map(|key| key[column].as_str()).collect();
        let columns: Vec<Vec<&str>> = (0..3).map(column).collect();
        let counts = plain.values().map(|[success, errors, filtered]| Counts {
            success: *success,
            errors: *errors,
            filtered: *filtered,
        });
        Rows::from_values(&columns, &counts.collect::<Vec<_>>()).expect("distinct rows")
    }

    /// Returns rows as a plain map, after checking that they are canonical.
    fn plain(rows: &Rows) -> Plain {
        for (dictionary, ids) in rows.dictionaries.iter().zip(&rows.ids) {
            let values: Vec<&str> = dictionary.values().collect();
            assert!(values.is_sorted_by(|a, b| a < b), "the dictionary is sorted");
            let is_used = |id: u32| ids.contains(&id);
            assert!((0..values.len() as u32).all(is_used), "and used as a whole");
        }
        let keys: Vec<Key> = (0..rows.len()).map(|row| rows.key(row)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "rows are sorted");
        let row = |row| {
            let values = (0..rows.width()).map(|column| rows.value(row, column).to_owned());
            let Counts { success, errors, filtered } = rows.counts(row);
            (values.collect(), [success, errors, filtered])
        };
        let plain: Plain = (0..rows.len()).map(row).collect();
        let total = plain.values().fold([0; 3], |sum, counts| add(sum, *counts));
        let Counts { success, errors, filtered } = rows.totals();
        assert_eq!([success, errors, filtered], total);
        plain
    }

    fn add(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
        [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
    }

    /// Rows with other keys; rows with equal keys are added up.
    fn rekeyed<'a>(
        rows: impl IntoIterator<Item = (&'a Vec<String>, &'a [u64; 3])>,
        key: impl Fn(&[String]) -> Vec<String>,
    ) -> Plain {
        let mut sums = Plain::new();
        for (values, counts) in rows {
            let sum = sums.entry(key(values)).or_default();
            *sum = add(*sum, *counts);
        }
        sums
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_are_built_as_in_a_map(
            (given, pushed) in any_rows(40).prop_flat_map(|given| {
                let pushed: Vec<_> = given.clone().into_iter().collect();
                (Just(given), Just(pushed).prop_shuffle())
            }),
        ) {
            let mut builder = RowsBuilder::new(3, crate::RowsLimits::NONE, HashKeys::from_seed(1));
            for (values, [success, errors, filtered]) in pushed {
                let mut key = Key::default();
                for (column, value) in values.iter().enumerate() {
                    key[column] = builder.intern(column, value).expect("there is room");
                }
                let counts = Counts { success, errors, filtered };
                prop_assert_eq!(builder.add(key, counts, false), Ok(Added::New));
            }
            prop_assert_eq!(plain(&builder.finish()), given);
        }

        #[test]
        fn rows_are_regrouped_as_in_a_map(
            given in prop_oneof![any_rows(6), any_rows(5_000)],
            columns in prop::sample::subsequence(vec![0, 1, 2], 0..=3).prop_shuffle(),
        ) {
            let key = |values: &[String]| columns.iter().map(|column| values[*column].clone()).collect();
            prop_assert_eq!(plain(&rows(&given).regroup(&columns)), rekeyed(&given, key));
        }

        #[test]
        fn rows_are_filtered_as_in_a_map(given in any_rows(6), limit in "[0-6]") {
            let rows = rows(&given);
            let among = rows.dictionaries[1].values().map(|value| value < limit.as_str()).collect();
            let filtered = rows.filter(&[None, Some(among), None]);
            let mut expected = given;
            expected.retain(|values, _| values[1] < limit);
            prop_assert_eq!(plain(&filtered), expected);
        }

        #[test]
        fn rows_are_combined_as_in_a_map(
            parts in prop::collection::vec(prop_oneof![any_rows(6), any_rows(40)], 0..5),
        ) {
            let each: Vec<Rows> = parts.iter().map(rows).collect();
            let combined = Rows::combine(&each.iter().collect::<Vec<_>>(), 3).expect("they fit");
            prop_assert_eq!(plain(&combined), rekeyed(parts.iter().flatten(), <[String]>::to_vec));
        }
    }
}
