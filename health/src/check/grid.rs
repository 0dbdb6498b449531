//! The groups of a table.

use std::cmp::Ordering;

use tallyfold::{CountTable, Counts, Deltas, Dictionary, Dimension, Frame, Key, WindowRows};

use super::counted::{Counted, RowsOf};
use super::slots::Slots;

/// A row of a table that is in no group.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// The groups of a table.
pub(crate) struct Grid<'t> {
    counted: &'t Counted<'t>,
    /// Which columns of the table the groups are made of.
    columns: Vec<usize>,
    /// Of each group, its ids in those columns; sorted.
    groups: Vec<Key>,
    /// Of each row of the whole table, its group.
    row_groups: Vec<u32>,
}

impl<'t> Grid<'t> {
    /// The groups by some dimensions, of those rows that have the wanted values. None if the table lacks a dimension, which
    /// is given.
    pub(crate) fn new(
        counted: &'t Counted<'t>,
        by: &[Dimension],
        only: &[(Dimension, Vec<String>)],
    ) -> Result<Self, Dimension> {
        let table = counted.table;
        let place = |dimension: Dimension| table.dimensions().position(dimension).ok_or(dimension);
        let columns = by
            .iter()
            .map(|own| place(*own))
            .collect::<Result<Vec<_>, _>>()?;
        let keys = table.keys();
        let mut wanted: Vec<(usize, Vec<bool>)> = Vec::new();
        for (dimension, values) in only {
            let column = place(*dimension)?;
            let dictionary = &keys.dictionaries[column];
            let is_wanted = |value: &str| values.iter().any(|wanted| wanted == value);
            wanted.push((column, dictionary.values().map(is_wanted).collect()));
        }
        let is_in = |row: usize| {
            wanted
                .iter()
                .all(|(column, wanted)| wanted[keys.ids[*column][row] as usize])
        };
        let key_of = |row: usize| {
            let mut key = Key::default();
            for (id, column) in key.iter_mut().zip(&columns) {
                *id = keys.ids[*column][row];
            }
            key
        };
        let rows = (0..table.len()).filter(|row| is_in(*row));
        let mut groups: Vec<Key> = rows.map(key_of).collect();
        if by.is_empty() {
            // All events are a group even if there is none.
            groups.push(Key::default());
        }
        groups.sort_unstable();
        groups.dedup();
        let group_of = |row: usize| match is_in(row) {
            true => groups
                .binary_search(&key_of(row))
                .map_or(NO_GROUP, |group| group as u32),
            false => NO_GROUP,
        };
        let row_groups = (0..table.len()).map(group_of).collect();
        Ok(Self {
            counted,
            columns,
            groups,
            row_groups,
        })
    }

    /// How many groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The values of a group, in the order of the rule's dimensions.
    pub(crate) fn values(&self, group: usize) -> Vec<&str> {
        let dictionaries = self.table().keys().dictionaries;
        let values = self.columns.iter().zip(&self.groups[group]);
        values
            .map(|(column, id)| dictionaries[*column].value(*id))
            .collect()
    }

    /// The group with these values.
    pub(crate) fn find(&self, values: &[&str]) -> Option<usize> {
        if values.len() != self.columns.len() {
            return None;
        }
        let dictionaries = self.table().keys().dictionaries;
        let mut key = Key::default();
        for ((id, column), value) in key.iter_mut().zip(&self.columns).zip(values) {
            *id = position(&dictionaries[*column], value)?;
        }
        self.groups.binary_search(&key).ok()
    }

    /// Of each row of the table, its group.
    pub(crate) fn row_groups(&self) -> &[u32] {
        &self.row_groups
    }

    /// Each row of the table that is in a group, in some slots: its position and its counts.
    pub(crate) fn each_row(
        &self,
        group: usize,
        slots: &Slots,
        is_wanted: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, usize, Counts),
    ) {
        for (window, place) in self.counted.windows.iter().zip(&slots.places) {
            let Some(slot) = place.filter(|slot| is_wanted(*slot)) else {
                continue;
            };
            let mut rows = RowsOf::new(self.table());
            for (key, counts) in window.clone() {
                let row = rows.find(&key);
                if self.row_groups[row] as usize == group {
                    take(row, slot, counts_of(counts));
                }
            }
        }
    }

    /// The counts.
    pub(crate) fn counted(&self) -> &'t Counted<'t> {
        self.counted
    }

    /// The table.
    pub(crate) fn table(&self) -> &'t CountTable {
        self.counted.table
    }

    /// The rows of the table that are in a group, sorted.
    pub(crate) fn rows_of(&self, group: usize) -> Vec<usize> {
        let rows = self.row_groups.iter().enumerate();
        let own = rows.filter(|(_, own)| **own as usize == group);
        own.map(|(row, _)| row).collect()
    }

    /// The windows of the table.
    pub(crate) fn windows(&self) -> &[WindowRows] {
        &self.counted.windows
    }
}

/// Where a value stands in a dictionary, which is sorted.
fn position(dictionary: &Dictionary, value: &str) -> Option<u32> {
    let (mut start, mut end) = (0, dictionary.len() as u32);
    while start < end {
        let middle = start + (end - start) / 2;
        match dictionary.value(middle).cmp(value) {
            Ordering::Less => start = middle + 1,
            Ordering::Equal => return Some(middle),
            Ordering::Greater => end = middle,
        }
    }
    None
}

/// Counts of a table, which are never below 0.
pub(crate) fn counts_of(counts: Deltas) -> Counts {
    let own = |count| u64::try_from(count).unwrap_or_default();
    Counts {
        success: own(counts.success),
        errors: own(counts.errors),
        filtered: own(counts.filtered),
    }
}
