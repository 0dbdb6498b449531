//! The counts of groups, slot by slot, in columns; those of several rules are read together.

use tallyfold::Counts;

use super::counted::{Counted, RowsOf};
use super::grid::{Grid, NO_GROUP, counts_of};
use super::slots::Slots;
use crate::measure::Measure;

/// The counts of some groups of a rule.
pub(crate) struct Block<'s> {
    slots: &'s Slots,
    measure: Measure,
    /// Of each row of the whole table, the place of its group in this block.
    row_places: Vec<u32>,
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

impl<'s> Block<'s> {
    /// For so many groups, of which nothing is read yet. `place_of` gives the place of each group of the grid that is in it.
    pub(crate) fn new(
        grid: &Grid<'_>,
        slots: &'s Slots,
        measure: Measure,
        groups: usize,
        place_of: impl Fn(u32) -> u32,
    ) -> Self {
        let cells = groups * slots.len();
        let places = grid.row_groups().iter().map(|group| match *group {
            NO_GROUP => NO_GROUP,
            group => place_of(group),
        });
        Self {
            slots,
            measure,
            row_places: places.collect(),
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

    /// The counts of the group with that place.
    pub(crate) fn columns(&self, place: usize) -> Columns<'_> {
        let start = place * self.slots.len();
        let own = start..start + self.slots.len();
        Columns {
            parts: &self.parts[own.clone()],
            wholes: self.wholes.as_ref().map(|wholes| &wholes[own]),
        }
    }
}

/// Reads the counts of all blocks, which are of the same table. Each row of the windows that any of them needs is read once.
pub(crate) fn read(counted: &Counted<'_>, blocks: &mut [Block<'_>]) {
    for (at, window) in counted.windows.iter().enumerate() {
        let wanting = blocks.iter_mut();
        let wanting = wanting.filter_map(|block| Some((block.slots.places[at]?, block)));
        let mut wanting: Vec<(usize, &mut Block<'_>)> = wanting.collect();
        if wanting.is_empty() {
            continue;
        }
        let mut rows = RowsOf::new(counted.table);
        for (key, counts) in window.clone() {
            let row = rows.find(&key);
            let counts = counts_of(counts);
            for (slot, block) in &mut wanting {
                let place = block.row_places[row];
                if place != NO_GROUP {
                    block.add(place, *slot, counts);
                }
            }
        }
    }
}
