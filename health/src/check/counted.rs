//! The counts that rules are applied to, read window by window.

use tallyfold::{CountTable, Frame, Key, Metric, WindowRows};

use super::outcome::Observed;

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
    pub(crate) fn of(observed: &Observed<'t>) -> Self {
        Self {
            delivery: observed.delivery.map(Counted::of),
            ingestion: observed.ingestion.map(Counted::of),
        }
    }

    /// The counts of an endpoint.
    pub(crate) fn get(&self, metric: Metric) -> Option<&Counted<'t>> {
        match metric {
            Metric::EventDelivery => self.delivery.as_ref(),
            Metric::EventIngestion => self.ingestion.as_ref(),
        }
    }

    /// The most rows that one of the tables has.
    pub(crate) fn rows(&self) -> usize {
        let both = [&self.delivery, &self.ingestion].into_iter().flatten();
        both.map(|counted| counted.table.len())
            .max()
            .unwrap_or_default()
    }
}

/// Finds the rows of a window, which are sorted, among all rows of its table, which are sorted in the same way.
pub(crate) struct RowsOf<'t> {
    ids: &'t [Vec<u32>],
    rows: usize,
    next: usize,
}

impl<'t> RowsOf<'t> {
    /// Before the first row.
    pub(crate) fn new(table: &'t CountTable) -> Self {
        Self {
            ids: table.keys().ids,
            rows: table.len(),
            next: 0,
        }
    }

    /// The first row that is not before the key. Rows that are asked for in their order are found in few steps.
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
