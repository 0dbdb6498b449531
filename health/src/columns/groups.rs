//! The counts of groups, slot by slot, in columns.

use std::cmp::Ordering;

use tallyfold::{
    Code, CountTable, Counts, Deltas, Dictionary, Dimension, Error, Frame, Identity, Key, Metric,
    Result, Window, WindowRows,
};

use super::slots::Slots;
use crate::measure::Measure;

/// The counts that rules are applied to, with their history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// Counts of delivery.
    pub delivery: Option<&'a CountTable>,
    /// Counts of ingestion.
    pub ingestion: Option<&'a CountTable>,
}

impl Observed<'_> {
    /// Whose counts they are.
    pub(crate) fn identity(&self) -> Result<Identity> {
        let of = |table: Option<&CountTable>| {
            table.map_or_else(Identity::default, |table| table.identity().clone())
        };
        of(self.delivery).with(&of(self.ingestion), "ingestion")
    }
}

/// The counts of an endpoint.
pub(crate) struct Counted<'t> {
    /// All of them.
    pub(crate) table: &'t CountTable,
    /// Their windows, sorted.
    pub(crate) windows: Vec<WindowRows>,
}

/// The counts of both endpoints.
pub(crate) struct Endpoints<'t> {
    delivery: Option<Counted<'t>>,
    ingestion: Option<Counted<'t>>,
}

impl<'t> Counted<'t> {
    fn of(table: &'t CountTable) -> Self {
        Self {
            table,
            windows: table.windowed().windows,
        }
    }
}

impl<'t> Endpoints<'t> {
    /// What was observed.
    ///
    /// # Errors
    /// `invalid_argument` for a table of the other endpoint.
    pub(crate) fn of(observed: &Observed<'t>) -> Result<Self> {
        let both = [
            ("delivery", Metric::EventDelivery, observed.delivery),
            ("ingestion", Metric::EventIngestion, observed.ingestion),
        ];
        for (name, wanted, table) in both {
            let metric = table.and_then(CountTable::metric);
            if let Some(metric) = metric.filter(|metric| *metric != wanted) {
                let message = format!("this table has counts of {metric}, want {wanted}");
                return Err(Error::argument(name, Code::InvalidArgument, message));
            }
        }
        Ok(Self {
            delivery: observed.delivery.map(Counted::of),
            ingestion: observed.ingestion.map(Counted::of),
        })
    }

    /// The counts of an endpoint.
    pub(crate) fn get(&self, metric: Metric) -> Option<&Counted<'t>> {
        match metric {
            Metric::EventDelivery => self.delivery.as_ref(),
            Metric::EventIngestion => self.ingestion.as_ref(),
        }
    }

    /// The latest window.
    pub(crate) fn latest(&self) -> Option<Window> {
        let both = [&self.delivery, &self.ingestion].into_iter().flatten();
        let last = both.filter_map(|counted| Some(counted.windows.last()?.window));
        last.max_by_key(|window| window.end())
    }

    /// The number of rows of the larger table.
    pub(crate) fn rows(&self) -> usize {
        let both = [&self.delivery, &self.ingestion].into_iter().flatten();
        both.map(|counted| counted.table.len())
            .max()
            .unwrap_or_default()
    }
}

/// Finds the rows of a window among all rows of its table. Both are sorted in the same way.
pub(crate) struct RowsOf<'t> {
    ids: &'t [Vec<u32>],
    rows: usize,
    next: usize,
}

impl<'t> RowsOf<'t> {
    /// Starts before the first row.
    pub(crate) fn new(table: &'t CountTable) -> Self {
        Self {
            ids: table.keys().ids,
            rows: table.len(),
            next: 0,
        }
    }

    /// The first row that is not before the key. If keys are searched in order, each takes few steps.
    pub(crate) fn find(&mut self, key: &Key) -> usize {
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

/// Marks a row that is in no group.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// The groups of a table.
pub(crate) struct Grid<'t> {
    counted: &'t Counted<'t>,
    /// Which columns of the table the groups are made of.
    columns: Vec<usize>,
    /// For each group, its IDs in these columns; sorted.
    groups: Vec<Key>,
    /// For each row of the whole table, its group.
    row_groups: Vec<u32>,
}

impl<'t> Grid<'t> {
    /// Groups the rows that have the values in `only` by the dimensions in `by`. The error is a dimension that the
    /// table lacks.
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
            // Without dimensions, all events form one group, even if there are no events.
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

    /// The dimensions of the groups.
    pub(crate) fn dimensions(&self) -> Vec<Dimension> {
        let all: Vec<Dimension> = self.table().dimensions().iter().collect();
        self.columns.iter().map(|column| all[*column]).collect()
    }

    /// The values of a group, in the order of the rule's dimensions.
    pub(crate) fn values(&self, group: usize) -> Vec<&str> {
        let dictionaries = self.table().keys().dictionaries;
        let values = self.columns.iter().zip(&self.groups[group]);
        values
            .map(|(column, id)| dictionaries[*column].value(*id))
            .collect()
    }

    /// The values of some dimensions in a row of the table.
    pub(crate) fn row_values(&self, row: usize, dimensions: &[Dimension]) -> Vec<String> {
        let keys = self.table().keys();
        let columns = dimensions
            .iter()
            .filter_map(|own| self.table().dimensions().position(*own));
        let values = columns.map(|column| keys.dictionaries[column].value(keys.ids[column][row]));
        values.map(str::to_owned).collect()
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

    /// For each row of the table, its group.
    pub(crate) fn row_groups(&self) -> &[u32] {
        &self.row_groups
    }

    /// Calls `take` for each row of a group in each wanted slot: with the position of the row, the slot and the counts.
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

/// The position of a value in a sorted dictionary.
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

/// Converts the counts of a table, which are never below 0.
pub(crate) fn counts_of(counts: Deltas) -> Counts {
    let own = |count| u64::try_from(count).unwrap_or_default();
    Counts {
        success: own(counts.success),
        errors: own(counts.errors),
        filtered: own(counts.filtered),
    }
}

/// The counts of some groups of a rule.
pub(crate) struct Block<'s> {
    slots: &'s Slots,
    measure: Measure,
    /// For each row of the whole table, the position of its group in this block.
    row_places: Vec<u32>,
    parts: Vec<u64>,
    wholes: Option<Vec<u64>>,
}

/// The counts of one group, slot by slot.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'b> {
    /// The events that are counted.
    pub(crate) parts: &'b [u64],
    /// For a rate, the events that they are a share of.
    pub(crate) wholes: Option<&'b [u64]>,
}

impl Columns<'_> {
    /// The counts in a slot.
    pub(crate) fn at(&self, slot: usize) -> (u64, Option<u64>) {
        (self.parts[slot], self.wholes.map(|wholes| wholes[slot]))
    }
}

impl<'s> Block<'s> {
    /// A block for some groups, with no counts read yet. `place_of` returns the position in the block of each group of
    /// the grid.
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

/// Reads the counts of all blocks, which belong to the same table. Each row of the needed windows is read once.
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
