//! The counts of some groups of a rule, slot by slot.

use std::ops::Range;

use tallyfold::{CountTable, Counts, WindowRows};

use super::groups::{Counted, CountedRows, Grid, Kept, NO_GROUP, RowsOf, Sums, counts_of};
use super::slots::Slots;
use crate::measure::Measure;

/// The counts of some groups of a rule.
pub(crate) struct Block<'s> {
    grid: &'s Grid<'s>,
    slots: &'s Slots,
    measure: Measure,
    /// For each group of the grid, its position in this block; `NO_GROUP` for groups of other blocks.
    places: Vec<u32>,
    parts: Vec<u64>,
    wholes: Option<Vec<u64>>,
}

/// The counts of one group, slot by slot.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'b> {
    /// The events that are counted.
    pub(crate) parts: &'b [u64],
    /// For a rate, the events that `parts` are a share of.
    pub(crate) wholes: Option<&'b [u64]>,
}

impl Columns<'_> {
    /// Returns the counts in a slot.
    pub(crate) fn at(&self, slot: usize) -> (u64, Option<u64>) {
        (self.parts[slot], self.wholes.map(|wholes| wholes[slot]))
    }
}

impl<'s> Block<'s> {
    /// Makes a block for some groups, before any counts are read. `place_of` returns the position in the block of each
    /// group of the grid.
    pub(crate) fn new(
        grid: &'s Grid<'s>,
        slots: &'s Slots,
        measure: Measure,
        groups: usize,
        place_of: impl Fn(u32) -> u32,
    ) -> Self {
        let cells = groups * slots.len();
        Self {
            grid,
            slots,
            measure,
            places: (0..grid.len() as u32).map(place_of).collect(),
            parts: vec![0; cells],
            wholes: measure.is_rate().then(|| vec![0; cells]),
        }
    }

    fn add(&mut self, place: u32, slot: usize, counts: Counts) {
        let most = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let cell = place as usize * self.slots.len() + slot;
        let part = &mut self.parts[cell];
        *part = part.saturating_add(most(self.measure.part(counts)));
        if let Some(wholes) = &mut self.wholes {
            let whole = most(self.measure.whole(counts).unwrap_or_default());
            wholes[cell] = wholes[cell].saturating_add(whole);
        }
    }

    /// Adds the sums of a group.
    fn add_all(&mut self, place: u32, sums: Sums<'_>) {
        let all = |counts: &Counts| {
            let attempts = counts.success.saturating_add(counts.errors);
            attempts.saturating_add(counts.filtered)
        };
        match self.measure {
            Measure::Success => self.add_each(place, sums, |counts| [counts.success, 0]),
            Measure::Errors => self.add_each(place, sums, |counts| [counts.errors, 0]),
            Measure::Filtered => self.add_each(place, sums, |counts| [counts.filtered, 0]),
            Measure::Events => self.add_each(place, sums, |counts| [all(counts), 0]),
            Measure::ErrorRate => self.add_each(place, sums, |counts| {
                [counts.errors, counts.success.saturating_add(counts.errors)]
            }),
            Measure::FilteredRate => {
                self.add_each(place, sums, |counts| [counts.filtered, all(counts)]);
            }
        }
    }

    fn add_each(&mut self, place: u32, sums: Sums<'_>, numbers: impl Fn(&Counts) -> [u64; 2]) {
        let start = place as usize * self.slots.len();
        let own = start..start + self.slots.len();
        let parts = &mut self.parts[own.clone()];
        let mut wholes = self.wholes.as_mut().map(|wholes| &mut wholes[own]);
        for (window, counts) in sums {
            let Some(slot) = self.slots.places[*window as usize] else {
                continue;
            };
            let [part, whole] = numbers(counts);
            parts[slot] = parts[slot].saturating_add(part);
            if let Some(wholes) = &mut wholes {
                wholes[slot] = wholes[slot].saturating_add(whole);
            }
        }
    }

    /// Returns the counts of the group at a position of the block.
    pub(crate) fn columns(&self, place: usize) -> Columns<'_> {
        let start = place * self.slots.len();
        let own = start..start + self.slots.len();
        Columns {
            parts: &self.parts[own.clone()],
            wholes: self.wholes.as_ref().map(|wholes| &wholes[own]),
        }
    }
}

/// Reads the counts of all blocks, which belong to the same endpoint. It reads each row or each sum of the needed windows once.
pub(crate) fn read(counted: &Counted<'_>, blocks: &mut [Block<'_>]) {
    match counted.rows() {
        CountedRows::Table(table, windows) => read_rows(table, windows, blocks),
        CountedRows::Kept(kept) => read_sums(*kept, blocks),
    }
}

fn read_rows(table: &CountTable, windows: &[WindowRows], blocks: &mut [Block<'_>]) {
    for (at, window) in windows.iter().enumerate() {
        let wanting = blocks.iter_mut();
        let wanting = wanting.filter_map(|block| Some((block.slots.places[at]?, block)));
        let mut wanting: Vec<(usize, &mut Block<'_>)> = wanting.collect();
        if wanting.is_empty() {
            continue;
        }
        let mut rows = RowsOf::new(table);
        for (key, counts) in window.clone() {
            let row = rows.find(&key);
            let counts = counts_of(counts);
            for (slot, block) in &mut wanting {
                let group = block.grid.row_groups[row];
                let place = block.places.get(group as usize).copied();
                if let Some(place) = place.filter(|place| *place != NO_GROUP) {
                    block.add(place, *slot, counts);
                }
            }
        }
    }
}

fn read_sums(kept: &dyn Kept, blocks: &mut [Block<'_>]) {
    let mut sets: Vec<usize> = blocks.iter().map(|block| block.grid.set).collect();
    sets.sort_unstable();
    sets.dedup();
    for set in sets {
        let own = blocks.iter_mut().filter(|block| block.grid.set == set);
        let mut own: Vec<&mut Block<'_>> = own.collect();
        let groups = own.first().map_or(0, |block| block.places.len());
        let is_wanted = |group: usize| own.iter().any(|block| block.places[group] != NO_GROUP);
        let wanted: Vec<bool> = (0..groups).map(is_wanted).collect();
        let windows = own.iter().map(|block| block.slots.places.as_slice());
        let windows: Vec<&[Option<usize>]> = windows.collect();
        let is_needed = |range: Range<usize>| {
            let mut all = windows.iter().flat_map(|places| &places[range.clone()]);
            all.any(Option::is_some)
        };
        kept.sums(set, &wanted, &is_needed, &mut |group, sums| {
            for block in &mut own {
                let place = block.places[group];
                if place != NO_GROUP {
                    block.add_all(place, sums);
                }
            }
        });
    }
}
