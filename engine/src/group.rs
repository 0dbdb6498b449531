//! Rows out of rows: regrouped, filtered, added up. Arithmetic on ids; no string is hashed.

use std::sync::Arc;

use crate::counts::Counts;
use crate::dictionary::Dictionary;
use crate::order::Packing;
use crate::rows::{Key, Refused, Rows};

/// Sums by cell are kept up to so many cells, or as many as there are rows.
const FEW_CELLS: usize = 1 << 16;

impl Rows {
    /// Rows of ids and counts in any order; those of equal ids are added up. The totals must be
    /// known to fit, and each dictionary must be sorted and used as a whole.
    pub(crate) fn from_unsorted(
        dictionaries: Vec<Arc<Dictionary>>,
        packing: &Packing,
        keys: impl ExactSizeIterator<Item = u128>,
        counts: impl Fn(usize) -> Counts,
        totals: Counts,
    ) -> Self {
        let mut rows = Self::empty(dictionaries, totals);
        rows.reserve(keys.len());
        let mut last = None;
        packing.visit_sorted(keys, counts, |key, counts| {
            if last.replace(key) == Some(key) {
                rows.add_to_last(counts);
            } else {
                rows.push(key, counts);
            }
        });
        rows
    }

    /// Rows of values in any order: each column's values, and the counts.
    ///
    /// # Errors
    /// [`Refused::SumOverflow`], [`Refused::Repeated`] and [`Refused::DictionaryFull`], with the row.
    pub fn from_values(columns: &[Vec<&str>], counts: &[Counts]) -> Result<Self, (usize, Refused)> {
        let mut totals = Counts::default();
        for (row, counts) in counts.iter().enumerate() {
            let sum = totals.checked_add(*counts);
            totals = sum.ok_or((row, Refused::SumOverflow))?;
        }
        let mut dictionaries = Vec::with_capacity(columns.len());
        let mut ids = Vec::with_capacity(columns.len());
        for values in columns {
            let column = Dictionary::of_unsorted(values.iter().copied(), (0, 0));
            let (dictionary, column) = column.ok_or((0, Refused::DictionaryFull))?;
            dictionaries.push(dictionary);
            ids.push(column);
        }
        let packing = Packing::of(&dictionaries);
        let keys = (0..counts.len()).map(|row| packing.pack(ids.iter().map(|ids| ids[row])));
        let mut last = None;
        let mut repeated = None;
        packing.visit_sorted(
            keys.clone(),
            |row| row,
            |key, row| {
                if last.replace(key) == Some(key) {
                    repeated = repeated.or(Some(row));
                }
            },
        );
        match repeated {
            Some(row) => Err((row, Refused::Repeated)),
            None => Ok(Self::from_unsorted(
                dictionaries,
                &packing,
                keys,
                |row| counts[row],
                totals,
            )),
        }
    }

    /// Adds rows up by the given columns, in that order.
    #[must_use]
    pub fn regroup(&self, columns: &[usize]) -> Self {
        let kept = |column: &usize| Arc::clone(&self.dictionaries[*column]);
        let dictionaries: Vec<_> = columns.iter().map(kept).collect();
        let cells = dictionaries.iter().try_fold(1_usize, |cells, dictionary| {
            cells.checked_mul(dictionary.len())
        });
        match cells {
            Some(cells) if cells <= self.len().max(FEW_CELLS) => {
                self.regroup_in_cells(dictionaries, columns, cells)
            }
            _ => {
                let packing = Packing::of(&dictionaries);
                let key = |row| packing.pack(columns.iter().map(|column| self.ids[*column][row]));
                let keys = (0..self.len()).map(key);
                Self::from_unsorted(
                    dictionaries,
                    &packing,
                    keys,
                    |row| self.counts(row),
                    self.totals,
                )
            }
        }
    }

    /// With a sum for every combination of values, in the order of rows.
    fn regroup_in_cells(
        &self,
        dictionaries: Vec<Arc<Dictionary>>,
        columns: &[usize],
        cells: usize,
    ) -> Self {
        let mut sums = vec![(Counts::default(), false); cells];
        let mut cell_of = vec![0_u32; self.len()];
        for (column, dictionary) in columns.iter().zip(&dictionaries) {
            let size = dictionary.len() as u32;
            for (cell, id) in cell_of.iter_mut().zip(&self.ids[*column]) {
                *cell = *cell * size + id;
            }
        }
        let counts = self.success.iter().zip(&self.errors).zip(&self.filtered);
        for (cell, ((success, errors), filtered)) in cell_of.iter().zip(counts) {
            let (sum, is_there) = &mut sums[*cell as usize];
            sum.add(Counts {
                success: *success,
                errors: *errors,
                filtered: *filtered,
            });
            *is_there = true;
        }
        let sizes: Vec<usize> = dictionaries
            .iter()
            .map(|dictionary| dictionary.len())
            .collect();
        let mut rows = Self::empty(dictionaries, self.totals);
        for (cell, (sum, _)) in sums
            .iter()
            .enumerate()
            .filter(|(_, (_, is_there))| *is_there)
        {
            let mut key = Key::default();
            let mut rest = cell;
            for (id, size) in key.iter_mut().zip(&sizes).rev() {
                *id = (rest % size) as u32;
                rest /= size;
            }
            rows.push(key, *sum);
        }
        rows
    }

    /// The rows whose ids are all wanted: per column, whether each id is; `None` for all of them.
    #[must_use]
    pub fn filter(&self, wanted: &[Option<Vec<bool>>]) -> Self {
        let is_wanted = |row: &usize| {
            let mut columns = wanted.iter().zip(&self.ids);
            columns.all(|(wanted, ids)| {
                wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted[ids[*row] as usize])
            })
        };
        let kept: Vec<usize> = (0..self.len()).filter(is_wanted).collect();
        let mut rows = Self::empty(Vec::new(), Counts::default());
        for (dictionary, ids) in self.dictionaries.iter().zip(&self.ids) {
            let (dictionary, new_ids) = dictionary.used_by(kept.iter().map(|row| ids[*row]));
            rows.dictionaries.push(dictionary);
            rows.ids
                .push(kept.iter().map(|row| new_ids[ids[*row] as usize]).collect());
        }
        for row in kept {
            let counts = self.counts(row);
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
        let packing = Packing::of(&dictionaries);
        let mut keys = Vec::new();
        let mut counts = Vec::new();
        for (part, rows) in all.iter().enumerate() {
            for row in 0..rows.len() {
                let ids = rows.ids.iter().zip(&new_ids);
                keys.push(packing.pack(ids.map(|(ids, new)| new[part][ids[row] as usize])));
                counts.push(rows.counts(row));
            }
        }
        let keys = keys.into_iter();
        Ok(Self::from_unsorted(
            dictionaries,
            &packing,
            keys,
            |row| counts[row],
            totals,
        ))
    }

    fn empty(dictionaries: Vec<Arc<Dictionary>>, totals: Counts) -> Self {
        Self {
            ids: vec![Vec::new(); dictionaries.len()],
            dictionaries,
            totals,
            ..Self::default()
        }
    }

    fn reserve(&mut self, rows: usize) {
        let counts = [&mut self.success, &mut self.errors, &mut self.filtered];
        counts
            .into_iter()
            .for_each(|counts| counts.reserve_exact(rows));
        self.ids.iter_mut().for_each(|ids| ids.reserve_exact(rows));
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

    fn add_to_last(&mut self, counts: Counts) {
        let lasts = [&mut self.success, &mut self.errors, &mut self.filtered];
        for (column, count) in
            lasts
                .into_iter()
                .zip([counts.success, counts.errors, counts.filtered])
        {
            if let Some(last) = column.last_mut() {
                *last = last.wrapping_add(count);
            }
        }
    }
}
