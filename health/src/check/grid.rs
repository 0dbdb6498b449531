//! The counts of groups, window by window, in columns.

use std::cmp::Ordering;
use std::ops::Range;

use tallyfold::{
    CountTable, Counts, Deltas, Dictionary, Dimension, Frame, Key, WindowRows, Windowed,
};

use super::slots::Slots;
use crate::measure::Measure;

/// A row of a table that is in no group.
const NO_GROUP: u32 = u32::MAX;

/// The cells that are held at a time: 16 MiB of parts, and as many of wholes.
const CELLS: usize = 1 << 21;

/// The groups of a table.
#[derive(Clone)]
pub(crate) struct Grid<'t> {
    table: &'t CountTable,
    windowed: Windowed,
    /// Which columns of the table the groups are made of.
    columns: Vec<usize>,
    /// Of each group, its ids in those columns; sorted.
    groups: Vec<Key>,
    /// Of each row of the whole table, its group.
    row_groups: Vec<u32>,
}

/// The counts of some groups.
pub(crate) struct Block {
    slots: usize,
    parts: Vec<u64>,
    wholes: Option<Vec<u64>>,
}

/// The counts of one group, slot by slot.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'b> {
    /// What is counted.
    pub(crate) parts: &'b [u64],
    /// Of a rate, what that is a part of.
    pub(crate) wholes: Option<&'b [u64]>,
}

impl Columns<'_> {
    /// The counts in a slot.
    pub(crate) fn at(&self, slot: usize) -> (u64, Option<u64>) {
        (self.parts[slot], self.wholes.map(|wholes| wholes[slot]))
    }
}

impl<'t> Grid<'t> {
    /// The groups by some dimensions, of those rows that have the wanted values. None if the table lacks a dimension, which
    /// is given.
    pub(crate) fn new(
        table: &'t CountTable,
        by: &[Dimension],
        only: &[(Dimension, Vec<String>)],
    ) -> Result<Self, Dimension> {
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
            table,
            windowed: table.windowed(),
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
        let dictionaries = self.table.keys().dictionaries;
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
        let dictionaries = self.table.keys().dictionaries;
        let mut key = Key::default();
        for ((id, column), value) in key.iter_mut().zip(&self.columns).zip(values) {
            *id = position(&dictionaries[*column], value)?;
        }
        self.groups.binary_search(&key).ok()
    }

    /// The groups, as many at a time as fit into memory.
    pub(crate) fn blocks(&self, slots: usize) -> impl Iterator<Item = Range<usize>> {
        let most = (CELLS / slots.max(1)).max(1);
        let groups = self.len();
        (0..groups)
            .step_by(most)
            .map(move |start| start..groups.min(start + most))
    }

    /// The counts of some groups in all slots.
    pub(crate) fn block(&self, groups: Range<usize>, slots: &Slots, measure: Measure) -> Block {
        let mut places = vec![NO_GROUP; self.len()];
        for (place, group) in (0..).zip(groups.clone()) {
            places[group] = place;
        }
        self.chosen(&places, groups.len(), slots, measure)
    }

    /// The counts of groups in all slots, in an order of one's own: `places` has the place of each group.
    pub(crate) fn chosen(
        &self,
        places: &[u32],
        length: usize,
        slots: &Slots,
        measure: Measure,
    ) -> Block {
        let cells = length * slots.len();
        let mut block = Block {
            slots: slots.len(),
            parts: vec![0; cells],
            wholes: measure.is_rate().then(|| vec![0; cells]),
        };
        let place_of = |group: &u32| places.get(*group as usize).copied().unwrap_or(NO_GROUP);
        let row_places: Vec<u32> = self.row_groups.iter().map(place_of).collect();
        for (window, place) in self.windowed.windows.iter().zip(&slots.places) {
            let Some(slot) = place else {
                continue;
            };
            let mut rows = RowsOf::new(self.table);
            for (key, counts) in window.clone() {
                let place = row_places[rows.find(&key)];
                if place != NO_GROUP {
                    block.add(
                        place as usize * block.slots + slot,
                        counts_of(counts),
                        measure,
                    );
                }
            }
        }
        block
    }

    /// Each row of the table that is in a group, in some slots: its position and its counts.
    pub(crate) fn each_row(
        &self,
        group: usize,
        slots: &Slots,
        is_wanted: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, usize, Counts),
    ) {
        for (window, place) in self.windowed.windows.iter().zip(&slots.places) {
            let Some(slot) = place.filter(|slot| is_wanted(*slot)) else {
                continue;
            };
            let mut rows = RowsOf::new(self.table);
            for (key, counts) in window.clone() {
                let row = rows.find(&key);
                if self.row_groups[row] as usize == group {
                    take(row, slot, counts_of(counts));
                }
            }
        }
    }

    /// The table.
    pub(crate) fn table(&self) -> &'t CountTable {
        self.table
    }

    /// The rows of the table that are in a group, sorted.
    pub(crate) fn rows_of(&self, group: usize) -> Vec<usize> {
        let rows = self.row_groups.iter().enumerate();
        let own = rows.filter(|(_, own)| **own as usize == group);
        own.map(|(row, _)| row).collect()
    }

    /// The windows of the table.
    pub(crate) fn windows(&self) -> &[WindowRows] {
        &self.windowed.windows
    }
}

impl Block {
    fn add(&mut self, cell: usize, counts: Counts, measure: Measure) {
        let most = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let part = &mut self.parts[cell];
        *part = part.saturating_add(most(measure.part(counts)));
        if let Some(wholes) = &mut self.wholes {
            let whole = most(measure.whole(counts).unwrap_or_default());
            wholes[cell] = wholes[cell].saturating_add(whole);
        }
    }

    /// The counts of the group with that place.
    pub(crate) fn columns(&self, place: usize) -> Columns<'_> {
        let start = place * self.slots;
        let own = start..start + self.slots;
        Columns {
            parts: &self.parts[own.clone()],
            wholes: self.wholes.as_ref().map(|wholes| &wholes[own]),
        }
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
    let [success, errors, filtered] = counts
        .each()
        .map(|count| u64::try_from(count).unwrap_or_default());
    Counts {
        success,
        errors,
        filtered,
    }
}

/// Finds the rows of a window, which are sorted, among all rows of its table, which are sorted in the same way.
struct RowsOf<'t> {
    ids: &'t [Vec<u32>],
    rows: usize,
    next: usize,
}

impl<'t> RowsOf<'t> {
    fn new(table: &'t CountTable) -> Self {
        Self {
            ids: table.keys().ids,
            rows: table.len(),
            next: 0,
        }
    }

    /// The first row that is not before the key. Rows that are asked for in their order are found in few steps.
    fn find(&mut self, key: &Key) -> usize {
        let mut width = 1;
        while self.next + width <= self.rows && self.is_before(self.next + width - 1, key) {
            self.next += width;
            width *= 2;
        }
        let mut end = self.rows.min(self.next + width);
        while self.next < end {
            let middle = self.next + (end - self.next) / 2;
            match self.is_before(middle, key) {
                true => self.next = middle + 1,
                false => end = middle,
            }
        }
        self.next.min(self.rows.saturating_sub(1))
    }

    fn is_before(&self, row: usize, key: &Key) -> bool {
        let mut ids = self.ids.iter().zip(key);
        let other = ids.find(|(ids, id)| ids[row] != **id);
        other.is_some_and(|(ids, id)| ids[row] < *id)
    }
}
