//! Rows by window, read in place, for crates that write them elsewhere.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key, Packed, PackedReading, Rows};

use super::change::Deltas;
use super::comparison::Comparison;
use super::dimension::Dimensions;
use super::frame::Frame;
use super::identity::Identity;
use super::metric::Metric;
use super::part::{Part, PartRows};
use super::series::Series;
use super::table::CountTable;
use crate::time::window::Window;

/// The rows of a table, a series or a comparison by window. Rows are not copied: a clone takes memory only for each
/// window.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// The endpoint that the counts are from.
    pub metric: Option<Metric>,
    /// The dimensions of the rows, in sorting order.
    pub dimensions: Dimensions,
    /// For each dimension, its distinct values, sorted.
    pub dictionaries: Vec<Arc<Dictionary>>,
    /// Whose counts they are.
    pub identity: Identity,
    /// The windows, sorted.
    pub windows: Vec<WindowRows>,
}

/// The rows of one window, sorted. As an iterator, it returns each row's key, which holds the position of each of its
/// values in [`Windowed::dictionaries`], and its counts, or their changes.
#[derive(Clone, Debug)]
pub struct WindowRows {
    /// The window.
    pub window: Window,
    /// Whether the counts are complete and no longer change.
    pub settled: bool,
    /// The totals that the response reported; `None` for filtered counts, and for counts that aren't from a response.
    pub reported: Option<Counts>,
    kept: Kept,
}

/// Where the rows that have not been read are kept.
#[derive(Clone)]
enum Kept {
    /// Rows of these positions.
    Rows(Arc<dyn Keyed>, Range<usize>),
    /// Packed rows, which refer to a larger set of rows.
    Packed { sum: Arc<Translated>, packed: Arc<Packed>, reading: PackedReading },
}

/// Rows that have keys and counts by position.
pub(super) trait Keyed: Send + Sync {
    fn row(&self, position: usize) -> (Key, Deltas);
}

/// Rows, and for each column that has a dictionary of its own, the ids in the shared dictionary.
struct Translated {
    rows: Arc<Rows>,
    ids: Vec<Option<Vec<u32>>>,
}

impl Translated {
    fn new(rows: Arc<Rows>, shared: &[Arc<Dictionary>]) -> Self {
        let columns = rows.dictionaries().iter().zip(shared);
        let ids =
            columns.map(|(own, shared)| (!Arc::ptr_eq(own, shared)).then(|| shared.places_of(own)));
        Self { ids: ids.collect(), rows }
    }

    fn key(&self, position: usize) -> Key {
        let mut key = self.rows.key(position);
        for (id, ids) in key.iter_mut().zip(&self.ids) {
            if let Some(ids) = ids {
                *id = ids[*id as usize];
            }
        }
        key
    }
}

impl Keyed for Translated {
    fn row(&self, position: usize) -> (Key, Deltas) {
        (self.key(position), self.rows.counts(position).into())
    }
}

impl Keyed for Series {
    fn row(&self, position: usize) -> (Key, Deltas) {
        (self.keys().key(position), self.counts().counts(position).into())
    }
}

impl Keyed for Comparison {
    fn row(&self, position: usize) -> (Key, Deltas) {
        (self.keys().key(position), self.row_delta(position))
    }
}

impl WindowRows {
    /// The rows of each window. `windows` has the windows, and whether each is settled. `window_ids` has the position
    /// of each row's window, sorted.
    pub(super) fn all(
        rows: &Arc<dyn Keyed>,
        window_ids: &[u32],
        windows: impl Iterator<Item = (Window, bool)>,
    ) -> Vec<Self> {
        let mut start = 0;
        let windows = (0..).zip(windows).map(|(id, (window, settled))| {
            let rest = &window_ids[start..];
            let positions = start..start + rest.partition_point(|own| *own <= id);
            start = positions.end;
            Self { window, settled, reported: None, kept: Kept::Rows(Arc::clone(rows), positions) }
        });
        windows.collect()
    }
}

impl Iterator for WindowRows {
    type Item = (Key, Deltas);

    fn next(&mut self) -> Option<(Key, Deltas)> {
        match &mut self.kept {
            Kept::Rows(rows, positions) => positions.next().map(|position| rows.row(position)),
            Kept::Packed { sum, packed, reading } => {
                let (place, counts) = packed.next(reading)?;
                Some((sum.key(place as usize), counts.into()))
            }
        }
    }

    /// Rows that are not packed are skipped at once.
    fn nth(&mut self, n: usize) -> Option<(Key, Deltas)> {
        if let Kept::Rows(_, positions) = &mut self.kept {
            positions.start = positions.end.min(positions.start.saturating_add(n));
            return self.next();
        }
        (0..n).try_for_each(|_| self.next().map(|_| ()))?;
        self.next()
    }

    fn count(self) -> usize {
        match self.kept {
            Kept::Rows(_, positions) => positions.len(),
            Kept::Packed { .. } => self.fold(0, |count, _| count + 1),
        }
    }
}

impl CountTable {
    /// The rows of each response, for crates that write them elsewhere.
    #[must_use]
    pub fn windowed(&self) -> Windowed {
        let dictionaries = self.rows.dictionaries().to_vec();
        // Windows that are packed together share one set of rows, which is translated once.
        let mut packed_last: Option<Arc<Translated>> = None;
        let mut rows_of = |part: &Part| match &part.rows {
            PartRows::Own(rows) => {
                let all = 0..rows.len();
                let rows = Translated::new(Arc::clone(rows), &dictionaries);
                Kept::Rows(Arc::new(rows), all)
            }
            PartRows::Packed { sum, rows } => {
                let same = packed_last.take();
                let same = same.filter(|last| Arc::ptr_eq(&last.rows, sum));
                let sum = same
                    .unwrap_or_else(|| Arc::new(Translated::new(Arc::clone(sum), &dictionaries)));
                packed_last = Some(Arc::clone(&sum));
                Kept::Packed { sum, packed: Arc::clone(rows), reading: PackedReading::default() }
            }
        };
        let windows = self.parts.iter().map(|part| WindowRows {
            window: part.window,
            settled: !part.provisional,
            reported: part.reported,
            kept: rows_of(part),
        });
        Windowed {
            metric: self.metric(),
            identity: self.subject.identity.clone(),
            dimensions: *self.dimensions(),
            windows: windows.collect(),
            dictionaries,
        }
    }
}

impl Series {
    /// The rows of each window, for crates that write them elsewhere.
    #[must_use]
    pub fn windowed(self: &Arc<Self>) -> Windowed {
        let rows = Arc::clone(self) as Arc<dyn Keyed>;
        let windows = self.windows().iter();
        let windows = windows.map(|of| (of.window, of.settled()));
        Windowed {
            metric: self.metric(),
            identity: self.subject.identity.clone(),
            dimensions: *self.dimensions(),
            windows: WindowRows::all(&rows, self.window_ids(), windows),
            dictionaries: self.keys().dictionaries.to_vec(),
        }
    }
}

impl Comparison {
    /// The changes of one window, for crates that write them elsewhere.
    #[must_use]
    pub fn windowed(self: &Arc<Self>, window: Window) -> Windowed {
        let changes = WindowRows {
            window,
            settled: true,
            reported: None,
            kept: Kept::Rows(Arc::clone(self) as Arc<dyn Keyed>, 0..self.len()),
        };
        Windowed {
            metric: self.metric(),
            identity: self.subject.identity.clone(),
            dimensions: *self.dimensions(),
            windows: vec![changes],
            dictionaries: self.keys().dictionaries.to_vec(),
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(_, positions) => f.debug_tuple("Rows").field(positions).finish(),
            Self::Packed { reading, .. } => f.debug_tuple("Packed").field(reading).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::aggregator::{Aggregator, AggregatorOptions};

    fn quarter(number: u32, integrations: &[(&str, u64)]) -> CountTable {
        let (hour, minute) = (number / 4, number % 4 * 15);
        let (next_hour, next_minute) = ((number + 1) / 4, (number + 1) % 4 * 15);
        let day = |hour: u32| 1 + hour / 24;
        let instant = |hour: u32, minute: u32| {
            format!("2026-01-{:02}T{:02}:{minute:02}:00Z", day(hour), hour % 24)
        };
        let counts: Vec<String> = integrations
            .iter()
            .map(|(name, count)| {
                format!(r#"{{"success":"{count}","errors":"1","filtered":"0","dimensions":{{"integration":"{name}"}}}}"#)
            })
            .collect();
        let body = format!(
            r#"{{"start":"{}","end":"{}","totalDelivered":"0","totalErrors":"0","totalFiltered":"0","counts":[{}]}}"#,
            instant(hour, minute),
            instant(next_hour, next_minute),
            counts.join(",")
        );
        let mut aggregator =
            Aggregator::new(&["integration"], AggregatorOptions::default()).unwrap();
        aggregator.push(body.as_bytes()).unwrap();
        aggregator.finish().unwrap()
    }

    /// Every row of every window, with its values.
    fn all(of: &Windowed) -> Vec<(Window, String, Deltas)> {
        let mut all = Vec::new();
        for window in of.windows.clone() {
            let at = window.window;
            for (key, counts) in window {
                all.push((at, of.dictionaries[0].value(key[0]).to_owned(), counts));
            }
        }
        all
    }

    #[test]
    fn a_table_gives_the_rows_of_its_series_packed_or_not() {
        // 70 windows: 64 of them are packed together, six are not. Names differ from window to window.
        let parts: Vec<CountTable> = (0..70)
            .map(|number| {
                let own = format!("own-{:02}", number % 7);
                quarter(number, &[("a", u64::from(number)), (&own, 3)])
            })
            .collect();
        let table = CountTable::merge_all(&parts).unwrap();
        assert!(table.parts.iter().any(|part| part.rows.is_packed()));
        assert!(!table.parts.iter().all(|part| part.rows.is_packed()));
        let series = Arc::new(table.by_window(None).unwrap());
        let rows = all(&table.windowed());
        assert_eq!(rows.len(), 140);
        assert_eq!(rows, all(&series.windowed()));
        assert_eq!(rows[3].1, "own-01");
        assert_eq!(rows[2].2.success, 1);
    }

    #[test]
    fn what_has_been_read_is_not_read_again_by_a_clone() {
        let table = quarter(0, &[("a", 1), ("b", 2)]);
        let mut rows = table.windowed().windows.remove(0);
        let first = rows.next();
        let mut again = rows.clone();
        assert_ne!(again.next(), first);
        assert_eq!(again.next(), None);
    }

    #[test]
    fn a_part_of_a_packed_table_keeps_the_values_of_its_rows() {
        // Windows that are packed together have values that a part of them lacks.
        let name = |number: u32| ["b", "a", "d", "c"][(number / 32) as usize];
        let quarters = (0..128).map(|number| quarter(number, &[(name(number), 1), ("e", 2)]));
        let table = CountTable::merge_all(&quarters.collect::<Vec<_>>()).unwrap();
        for hours in [(0, 8), (8, 16), (4, 12), (16, 24), (24, 32)] {
            let at = |hour: u32| format!("2026-01-{:02}T{:02}:00:00Z", 1 + hour / 24, hour % 24);
            let range = Window::parse(&at(hours.0), &at(hours.1)).unwrap();
            let part = table.between(range).unwrap();
            let rows = all(&part.windowed());
            let wanted = all(&table.windowed());
            let wanted = wanted.into_iter().filter(|(window, ..)| range.contains(*window));
            assert_eq!(rows, wanted.collect::<Vec<_>>());
        }
    }
}
