//! Assigns rows to groups, and reads the counts of groups into columns, slot by slot.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use tallyfold::{
    Code, CountTable, Counts, Deltas, Dictionary, Dimension, Dimensions, Error, Frame, Identity,
    Key, Metric, Result, Window, WindowRows,
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
    /// Returns the cluster and the client that the counts belong to.
    pub(crate) fn identity(&self) -> Result<Identity> {
        let of = |table: Option<&CountTable>| {
            table.map_or_else(Identity::default, |table| table.identity().clone())
        };
        of(self.delivery).with(&of(self.ingestion), "ingestion")
    }
}

/// A window of counts, without its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The window.
    pub(crate) window: Window,
    /// Whether its counts no longer change.
    pub(crate) settled: bool,
    /// The totals that the service reported, if they are known.
    pub(crate) reported: Option<Counts>,
}

impl Head {
    /// Returns the window of some rows.
    pub(crate) fn of(rows: &WindowRows) -> Self {
        Self { window: rows.window, settled: rows.settled, reported: rows.reported }
    }
}

/// Sums of a group, each with the position of its window.
pub(crate) type Sums<'s> = &'s [(u32, Counts)];

/// Counts that are kept outside of memory, together with the sums that rules need.
pub(crate) trait Kept {
    /// Returns the position of the set with these sums, and its groups, sorted; `None` if there is no such set.
    fn set(&self, by: &[Dimension], only: &[(Dimension, Vec<String>)])
    -> Option<(usize, Vec<Key>)>;

    /// Reads the sums of the wanted groups in a set. Skips ranges of windows for which `is_needed` returns false.
    fn sums(
        &self,
        set: usize,
        wanted: &[bool],
        is_needed: &dyn Fn(Range<usize>) -> bool,
        take: &mut dyn FnMut(usize, Sums<'_>),
    );

    /// Reads the rows that have one of the given values in each given column. Skips ranges of windows for which `is_wanted`
    /// returns false.
    fn rows(
        &self,
        values: &[(usize, Vec<u32>)],
        is_wanted: &dyn Fn(Range<usize>) -> bool,
        take: &mut dyn FnMut(&Key, Sums<'_>),
    );

    /// Returns the sum of all rows of a window.
    fn totals(&self, window: usize) -> Counts;
}

/// The counts of one endpoint.
pub(crate) struct Counted<'t> {
    /// The endpoint.
    pub(crate) metric: Option<Metric>,
    /// The dimensions of the rows, in sorting order.
    pub(crate) dimensions: Dimensions,
    /// For each dimension, its distinct values, sorted.
    pub(crate) dictionaries: Vec<Arc<Dictionary>>,
    /// The windows, sorted.
    pub(crate) windows: Vec<Head>,
    rows: CountedRows<'t>,
}

/// Where the rows are stored.
enum CountedRows<'t> {
    /// In a table, window by window.
    Table(&'t CountTable, Vec<WindowRows>),
    /// Outside of memory.
    Kept(&'t dyn Kept),
}

/// The counts of the two endpoints.
pub(crate) struct Endpoints<'t> {
    delivery: Option<Counted<'t>>,
    ingestion: Option<Counted<'t>>,
}

impl<'t> Counted<'t> {
    /// Makes the counts of a table.
    pub(crate) fn of(table: &'t CountTable) -> Self {
        let windowed = table.windowed();
        Self {
            metric: windowed.metric,
            dimensions: windowed.dimensions,
            dictionaries: windowed.dictionaries,
            windows: windowed.windows.iter().map(Head::of).collect(),
            rows: CountedRows::Table(table, windowed.windows),
        }
    }

    /// Makes counts whose rows are kept outside of memory.
    pub(crate) fn kept(
        (metric, dimensions): (Metric, Dimensions),
        dictionaries: Vec<Arc<Dictionary>>,
        windows: Vec<Head>,
        kept: &'t dyn Kept,
    ) -> Self {
        Self {
            metric: Some(metric),
            dimensions,
            dictionaries,
            windows,
            rows: CountedRows::Kept(kept),
        }
    }

    /// Returns whether the counts are kept outside of memory.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.rows, CountedRows::Kept(_))
    }

    /// Returns the sums of all rows of a window.
    pub(crate) fn totals(&self, window: usize) -> [u128; 3] {
        let mut sums = [0; 3];
        let mut add = |counts: Counts| {
            for (sum, count) in sums.iter_mut().zip(counts.each()) {
                *sum += u128::from(count);
            }
        };
        match &self.rows {
            CountedRows::Table(_, windows) => {
                let rows = windows[window].clone();
                rows.for_each(|(_, counts)| add(counts_of(counts)));
            }
            CountedRows::Kept(kept) => add(kept.totals(window)),
        }
        sums
    }
}

impl<'t> Endpoints<'t> {
    /// Returns the counts of the observed tables.
    ///
    /// # Errors
    /// `invalid_argument` for a table that belongs to the other endpoint.
    pub(crate) fn of(observed: &Observed<'t>) -> Result<Self> {
        Self::new(observed.delivery.map(Counted::of), observed.ingestion.map(Counted::of))
    }

    /// Makes the counts of both endpoints.
    ///
    /// # Errors
    /// `invalid_argument` for counts that belong to the other endpoint.
    pub(crate) fn new(
        delivery: Option<Counted<'t>>,
        ingestion: Option<Counted<'t>>,
    ) -> Result<Self> {
        let both = [
            ("delivery", Metric::EventDelivery, &delivery),
            ("ingestion", Metric::EventIngestion, &ingestion),
        ];
        for (name, wanted, counted) in both {
            let metric = counted.as_ref().and_then(|counted| counted.metric);
            if let Some(metric) = metric.filter(|metric| *metric != wanted) {
                let message = format!("this table has counts of {metric}, want {wanted}");
                return Err(Error::argument(name, Code::InvalidArgument, message));
            }
        }
        Ok(Self { delivery, ingestion })
    }

    /// Returns the counts of an endpoint.
    pub(crate) fn get(&self, metric: Metric) -> Option<&Counted<'t>> {
        match metric {
            Metric::EventDelivery => self.delivery.as_ref(),
            Metric::EventIngestion => self.ingestion.as_ref(),
        }
    }

    /// Returns the latest window of both endpoints.
    pub(crate) fn latest(&self) -> Option<Window> {
        let both = [&self.delivery, &self.ingestion].into_iter().flatten();
        let last = both.filter_map(|counted| Some(counted.windows.last()?.window));
        last.max_by_key(|window| window.end())
    }

    /// Returns the number of rows of the larger table; 0 for counts outside of memory.
    pub(crate) fn rows(&self) -> usize {
        let both = [&self.delivery, &self.ingestion].into_iter().flatten();
        let rows = both.map(|counted| match &counted.rows {
            CountedRows::Table(table, _) => table.len(),
            CountedRows::Kept(_) => 0,
        });
        rows.max().unwrap_or_default()
    }
}

/// Finds the rows of a window among all rows of its table. Both have the same order.
struct RowsOf<'t> {
    ids: &'t [Vec<u32>],
    rows: usize,
    next: usize,
}

impl<'t> RowsOf<'t> {
    /// Starts a search at the first row.
    fn new(table: &'t CountTable) -> Self {
        Self { ids: table.keys().ids, rows: table.len(), next: 0 }
    }

    /// Returns the first row whose key is at least `key`, or the last row. To take few steps, a search starts at the result
    /// of the previous one, so keys must be searched in ascending order.
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

/// Marks a row without a group, or a group that a block does not have.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// The groups of a table.
pub(crate) struct Grid<'t> {
    counted: &'t Counted<'t>,
    /// The columns of the table that form the groups.
    columns: Vec<usize>,
    /// For each restricted column, the IDs of the values to keep.
    only: Vec<(usize, Vec<u32>)>,
    /// For each group, its IDs in `columns`; sorted.
    groups: Vec<Key>,
    /// For each row of a table, its group. Empty for counts outside of memory, which have `set` instead.
    row_groups: Vec<u32>,
    set: usize,
}

impl<'t> Grid<'t> {
    /// Groups the rows that have the values in `only` by the dimensions in `by`. The error is a dimension that the
    /// table lacks.
    pub(crate) fn new(
        counted: &'t Counted<'t>,
        by: &[Dimension],
        only: &[(Dimension, Vec<String>)],
    ) -> Result<Self, Dimension> {
        let place = |dimension: Dimension| counted.dimensions.position(dimension).ok_or(dimension);
        let columns = by.iter().map(|own| place(*own)).collect::<Result<Vec<_>, _>>()?;
        let mut kept_ids: Vec<(usize, Vec<u32>)> = Vec::new();
        for (dimension, values) in only {
            let column = place(*dimension)?;
            let dictionary = &counted.dictionaries[column];
            let ids = values.iter().filter_map(|value| position(dictionary, value));
            let mut ids: Vec<u32> = ids.collect();
            ids.sort_unstable();
            kept_ids.push((column, ids));
        }
        let mut grid = Self {
            counted,
            columns,
            only: kept_ids,
            groups: Vec::new(),
            row_groups: Vec::new(),
            set: 0,
        };
        match &counted.rows {
            CountedRows::Table(table, _) => grid.group_rows(table),
            CountedRows::Kept(kept) => {
                (grid.set, grid.groups) = kept.set(by, only).unwrap_or((usize::MAX, Vec::new()));
            }
        }
        if by.is_empty() && grid.groups.is_empty() {
            // Without dimensions, all events form one group, even if there are no events.
            grid.groups.push(Key::default());
        }
        Ok(grid)
    }

    /// Finds the groups of a table, and the group of each row.
    fn group_rows(&mut self, table: &CountTable) {
        let keys = table.keys();
        let is_in = |row: usize| {
            let mut only = self.only.iter();
            only.all(|(column, ids)| ids.binary_search(&keys.ids[*column][row]).is_ok())
        };
        let key_of = |row: usize| {
            let mut key = Key::default();
            for (id, column) in key.iter_mut().zip(&self.columns) {
                *id = keys.ids[*column][row];
            }
            key
        };
        let rows = (0..table.len()).filter(|row| is_in(*row));
        let groups = distinct(rows.map(key_of).collect());
        let group_of = |row: usize| match is_in(row) {
            true => groups.binary_search(&key_of(row)).map_or(NO_GROUP, |group| group as u32),
            false => NO_GROUP,
        };
        self.row_groups = (0..table.len()).map(group_of).collect();
        self.groups = groups;
    }

    /// Returns the number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the dimensions of the groups.
    pub(crate) fn dimensions(&self) -> Vec<Dimension> {
        let all: Vec<Dimension> = self.counted.dimensions.iter().collect();
        self.columns.iter().map(|column| all[*column]).collect()
    }

    /// Returns the values of a group, in the order of the rule's dimensions.
    pub(crate) fn values(&self, group: usize) -> Vec<&str> {
        let values = self.columns.iter().zip(&self.groups[group]);
        values.map(|(column, id)| self.counted.dictionaries[*column].value(*id)).collect()
    }

    /// Returns the values of some dimensions in a row.
    pub(crate) fn row_values(&self, row: &Key, dimensions: &[Dimension]) -> Vec<String> {
        let columns = dimensions.iter().filter_map(|own| self.counted.dimensions.position(*own));
        let values = columns.map(|column| self.counted.dictionaries[column].value(row[column]));
        values.map(str::to_owned).collect()
    }

    /// Returns the group with these values.
    pub(crate) fn find(&self, values: &[&str]) -> Option<usize> {
        if values.len() != self.columns.len() {
            return None;
        }
        let mut key = Key::default();
        for ((id, column), value) in key.iter_mut().zip(&self.columns).zip(values) {
            *id = position(&self.counted.dictionaries[*column], value)?;
        }
        self.groups.binary_search(&key).ok()
    }

    /// Returns the group of another endpoint that has the same values as a group of this endpoint. Compares only the dimensions
    /// of the other endpoint's groups.
    pub(crate) fn find_in(&self, other: &Self, group: usize) -> Option<usize> {
        let dimensions = self.dimensions();
        let values = self.values(group);
        let shared = other.dimensions().into_iter().map(|dimension| {
            let place = dimensions.iter().position(|own| *own == dimension)?;
            Some(values[place])
        });
        other.find(&shared.collect::<Option<Vec<&str>>>()?)
    }

    /// Calls `take` for each row of a group in each wanted slot. The arguments are the key of the row, the slot and the counts.
    pub(crate) fn each_row(
        &self,
        group: usize,
        slots: &Slots,
        is_wanted: impl Fn(usize) -> bool,
        mut take: impl FnMut(&Key, usize, Counts),
    ) {
        let of_group = self.columns.iter().zip(&self.groups[group]);
        let of_group = of_group.map(|(column, id)| (*column, vec![*id]));
        let values: Vec<(usize, Vec<u32>)> = of_group.chain(self.only.clone()).collect();
        let slot_of = |window: usize| slots.places[window].filter(|slot| is_wanted(*slot));
        match &self.counted.rows {
            CountedRows::Table(_, windows) => {
                for (window, rows) in windows.iter().enumerate() {
                    let Some(slot) = slot_of(window) else {
                        continue;
                    };
                    for (key, counts) in rows.clone() {
                        let mut own = values.iter();
                        if own.all(|(column, ids)| ids.contains(&key[*column])) {
                            take(&key, slot, counts_of(counts));
                        }
                    }
                }
            }
            CountedRows::Kept(kept) => {
                let is_any = |mut windows: Range<usize>| windows.any(|at| slot_of(at).is_some());
                kept.rows(&values, &is_any, &mut |key, sums| {
                    for (window, counts) in sums {
                        if let Some(slot) = slot_of(*window as usize) {
                            take(key, slot, *counts);
                        }
                    }
                });
            }
        }
    }

    /// Returns the counts whose rows are grouped.
    pub(crate) fn counted(&self) -> &'t Counted<'t> {
        self.counted
    }
}

/// The counts of some groups of a rule.
pub(crate) struct Block<'s> {
    grid: &'s Grid<'s>,
    slots: &'s Slots,
    measure: Measure,
    /// For each group of the grid, its position in this block; [`NO_GROUP`] for groups of other blocks.
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
    /// Makes a block for some groups, before any counts are read. For each group of the grid, `place_of` returns its position in
    /// the block, or [`NO_GROUP`].
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

/// Reads the counts of all blocks, which must belong to the same endpoint. It reads each row or sum only once.
pub(crate) fn read(counted: &Counted<'_>, blocks: &mut [Block<'_>]) {
    match &counted.rows {
        CountedRows::Table(table, windows) => read_rows(table, windows, blocks),
        CountedRows::Kept(kept) => read_sums(*kept, blocks),
    }
}

fn read_rows(table: &CountTable, windows: &[WindowRows], blocks: &mut [Block<'_>]) {
    for (at, window) in windows.iter().enumerate() {
        let wanting = blocks.iter_mut();
        let wanting = wanting.filter(|block| block.slots.places[at].is_some());
        let mut wanting: Vec<&mut Block<'_>> = wanting.collect();
        if wanting.is_empty() {
            continue;
        }
        let mut rows = RowsOf::new(table);
        for (key, counts) in window.clone() {
            let row = rows.find(&key);
            let sums = [(at as u32, counts_of(counts))];
            for block in &mut wanting {
                let group = block.grid.row_groups[row];
                let place = block.places.get(group as usize).copied();
                if let Some(place) = place.filter(|place| *place != NO_GROUP) {
                    block.add_all(place, &sums);
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

/// Sorts keys and removes repetitions.
#[inline(never)]
pub(crate) fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the position of a value in a sorted dictionary.
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

/// Adds counts. The sums saturate.
pub(crate) fn added(one: Counts, other: Counts) -> Counts {
    Counts {
        success: one.success.saturating_add(other.success),
        errors: one.errors.saturating_add(other.errors),
        filtered: one.filtered.saturating_add(other.filtered),
    }
}

/// Converts the counts of a table, which are never negative.
pub(crate) fn counts_of(counts: Deltas) -> Counts {
    let own = |count| u64::try_from(count).unwrap_or_default();
    Counts {
        success: own(counts.success),
        errors: own(counts.errors),
        filtered: own(counts.filtered),
    }
}
