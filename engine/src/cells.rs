//! A cell for every combination of values, in the order of rows: nothing has to be sorted.

use std::sync::Arc;
use std::{array, iter};

use crate::counts::Counts;
use crate::dictionary::Dictionary;
use crate::rows::{Key, MOST_COLUMNS, NewIds};
use crate::sums::Sums;

/// There may be so many cells per row: a cell costs less than to sort a row does.
const CELLS_PER_ROW: usize = 4;

/// So few rows are sorted before all is set up here.
const FEW_ROWS: usize = 256;

/// How many rows are written to the columns in one go.
pub(crate) const AT_ONCE: usize = 64;

/// Where each combination has its cell: its ids are the digits of the cell's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    /// How many values each column has; 1 past the last one.
    bases: [u32; MOST_COLUMNS],
    len: u32,
}

impl Cells {
    /// The cells of all combinations of values, if there are any, and not too many for so many rows.
    pub(crate) fn of(dictionaries: &[Arc<Dictionary>], rows: usize) -> Option<Self> {
        let mut bases = [1; MOST_COLUMNS];
        for (base, dictionary) in bases.iter_mut().zip(dictionaries) {
            *base = dictionary.len() as u32;
        }
        let len = bases.into_iter().try_fold(1, u32::checked_mul)?;
        let most = rows.saturating_mul(CELLS_PER_ROW);
        (1..=most)
            .contains(&(len as usize))
            .then_some(Self { bases, len })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// The cell of a combination, whose ids come one by one.
    #[inline(always)]
    pub(crate) fn at(&self, ids: impl Iterator<Item = u32>) -> u32 {
        let digits = ids.zip(self.bases);
        digits.fold(0, |cell, (id, base)| cell * base + id)
    }

    /// How far each id takes a combination's cell from the first one: the cell is their sum.
    fn steps(&self, ids: &NewIds) -> [Vec<u32>; MOST_COLUMNS] {
        let mut step = self.len;
        array::from_fn(|column| {
            step /= self.bases[column];
            match &ids[column][..] {
                [] => vec![0],
                ids => ids.iter().map(|id| id * step).collect(),
            }
        })
    }

    /// The combination of a cell.
    #[inline]
    pub(crate) fn key(&self, mut cell: u32) -> Key {
        let mut key = Key::default();
        for (id, base) in key.iter_mut().zip(self.bases).rev() {
            *id = cell % base;
            cell /= base;
        }
        key
    }
}

/// Rows by cell, the counts of each in one word. Each row is written to its place right away, and
/// none is fetched from where it happens to be.
#[derive(Debug)]
pub(crate) struct PackedCells {
    cells: Cells,
    rows: usize,
    layout: Layout,
    /// Zero where no row is.
    words: Vec<u64>,
}

impl PackedCells {
    /// Sums that are of distinct combinations, whose ids become new ones. `None` if they are
    /// few, or their counts too large for one word.
    pub(crate) fn of(cells: Cells, sums: &Sums, new_ids: &NewIds, totals: Counts) -> Option<Self> {
        if sums.len() < FEW_ROWS {
            return None;
        }
        let all = (0..sums.len()).map(|row| sums.counts(row));
        // No count needs more bits than its total.
        let layout = Layout::of(iter::once(totals)).or_else(|| Layout::of(all))?;
        let steps = cells.steps(new_ids);
        let mut words = vec![0; cells.len()];
        for row in 0..sums.len() {
            let key = sums.ids(row).key();
            let steps = steps.iter().zip(key).map(|(steps, id)| steps[id as usize]);
            words[steps.sum::<u32>() as usize] = layout.pack(sums.counts(row));
        }
        Some(Self {
            cells,
            rows: sums.len(),
            layout,
            words,
        })
    }

    /// The successes of all rows, the errors, and the filtered ones.
    pub(crate) fn counts(&self) -> [Vec<u64>; 3] {
        let mut columns = [(); 3].map(|()| Vec::with_capacity(self.rows));
        let mut unpack = |words: &[u64]| {
            for (count, column) in columns.iter_mut().enumerate() {
                column.extend(words.iter().map(|word| self.layout.unpack(*word)[count]));
            }
        };
        let mut there = [0; AT_ONCE];
        let mut len = 0;
        for word in &self.words {
            // Which cells have a row can't be foreseen: all are written, and what is none is
            // written over.
            there[len] = *word;
            len += usize::from(*word != 0);
            if len == AT_ONCE {
                unpack(&there);
                len = 0;
            }
        }
        unpack(&there[..len]);
        columns
    }

    /// The ids of each of so many columns.
    pub(crate) fn ids(&self, width: usize) -> Vec<Vec<u32>> {
        let mut columns = Vec::with_capacity(width);
        let Some((last, others)) = self.cells.bases[..width].split_last() else {
            return columns;
        };
        // Cells that differ in nothing but the last column are neighbours: a run. Then those that differ
        // in nothing but the last two, and so on.
        let runs = self.words.chunks_exact(*last as usize);
        let mut rows_of_runs: Vec<u32> = Vec::with_capacity(runs.len());
        // With a place for what is written after the last row.
        let mut ids = vec![0; self.rows + 1];
        let mut len = 0;
        for run in runs {
            let start = len;
            for (id, word) in (0..).zip(run) {
                ids[len] = id;
                len += usize::from(*word != 0);
            }
            rows_of_runs.push((len - start) as u32);
        }
        ids.truncate(self.rows);
        columns.push(ids);
        for base in others.iter().rev() {
            let runs = rows_of_runs.chunks_exact(*base as usize);
            let mut ids = Vec::with_capacity(self.rows);
            for run in runs.clone() {
                for (id, rows) in (0..).zip(run) {
                    ids.extend(iter::repeat_n(id, *rows as usize));
                }
            }
            columns.push(ids);
            rows_of_runs = runs.map(|run| run.iter().sum()).collect();
        }
        columns.reverse();
        columns
    }
}

/// How many bits of a word each count has. Above them is a bit that is always set.
#[derive(Clone, Copy, Debug)]
struct Layout {
    success: u32,
    errors: u32,
    filtered: u32,
}

impl Layout {
    /// As many bits as the largest of each needs, if a word has them.
    fn of(all: impl Iterator<Item = Counts>) -> Option<Self> {
        let mut seen = Counts::default();
        for counts in all {
            seen.success |= counts.success;
            seen.errors |= counts.errors;
            seen.filtered |= counts.filtered;
        }
        let bits = |seen: u64| u64::BITS - seen.leading_zeros();
        let layout = Self {
            success: bits(seen.success),
            errors: bits(seen.errors),
            filtered: bits(seen.filtered),
        };
        (layout.success + layout.errors + layout.filtered < u64::BITS).then_some(layout)
    }

    #[inline(always)]
    fn pack(self, counts: Counts) -> u64 {
        let word = 1 << self.success | counts.success;
        let word = word << self.errors | counts.errors;
        word << self.filtered | counts.filtered
    }

    /// The success, errors and filtered of a word.
    #[inline(always)]
    fn unpack(self, word: u64) -> [u64; 3] {
        let low = |word: u64, bits: u32| word & ((1 << bits) - 1);
        [
            low(word >> (self.errors + self.filtered), self.success),
            low(word >> self.filtered, self.errors),
            low(word, self.filtered),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_share_a_word_up_to_its_last_bit() {
        let largest = |bits: [u32; 3]| {
            let [success, errors, filtered] = bits.map(|bits| (1 << bits) - 1);
            Counts {
                success,
                errors,
                filtered,
            }
        };
        for bits in [[31, 16, 16], [63, 0, 0], [0, 63, 0], [0, 0, 63], [0; 3]] {
            let counts = largest(bits);
            let layout = Layout::of([counts].into_iter()).expect("they fit");
            for counts in [counts, Counts::default()] {
                let word = layout.pack(counts);
                assert_ne!(word, 0);
                let unpacked = [counts.success, counts.errors, counts.filtered];
                assert_eq!(layout.unpack(word), unpacked);
            }
        }
        for bits in [[32, 16, 16], [31, 17, 16], [31, 16, 17]] {
            assert!(Layout::of([largest(bits)].into_iter()).is_none());
        }
    }
}
