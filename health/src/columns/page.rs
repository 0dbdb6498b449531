//! A page: the counts of a day or a week as bytes, with sums by the dimensions of rules.
//!
//! A page begins with its format, and the length and the checksum of its head. The head has the windows and the values of
//! the dimensions. For each set of sums, the head has the groups, and the length and the checksum of the counts. The
//! first set is the rows themselves; their keys are stored with the counts, not in the head. Counts are stored group by
//! group, because rules judge one group after another.

use std::sync::Arc;

use tallyfold::{
    Code, CountTable, Counts, Dictionary, Dimension, Dimensions, Error, Identity, Key, Metric,
    Result, Window,
};

use super::bytes::{
    Bytes, checksum, damaged, number, read_counts, read_key, too_large, write_counts, write_key,
};
use super::groups::{Head, added, counts_of, distinct};
use super::page_head::{PageHead, PageSums, SumsBy};

/// The rows of a page in memory.
#[derive(Clone, Debug)]
pub struct Page {
    metric: Metric,
    dimensions: Dimensions,
    identity: Identity,
    windows: Vec<Head>,
    /// For each dimension, its distinct values, sorted.
    values: Vec<Arc<Dictionary>>,
    /// The combinations of values that rows have, sorted.
    keys: Vec<Key>,
    /// The rows, sorted by key and window.
    rows: Vec<Row>,
}

/// A row: the positions of its key and its window, and its counts.
type Row = (u32, u32, Counts);

impl Page {
    /// Makes a page from one endpoint's table, without the windows in `left_out`.
    ///
    /// # Errors
    /// `invalid_argument` for a table without an endpoint.
    pub fn of_table(table: &CountTable, left_out: &[Window]) -> Result<Self> {
        let windowed = table.windowed();
        let metric = windowed.metric.ok_or_else(|| {
            let message = "these counts don't belong to an endpoint";
            Error::argument("table", Code::InvalidArgument, message)
        })?;
        let mut windows = Vec::new();
        let mut all: Vec<(Key, u32, Counts)> = Vec::new();
        for rows in windowed.windows {
            if left_out.contains(&rows.window) {
                continue;
            }
            let place = windows.len() as u32;
            windows.push(Head::of(&rows));
            all.extend(rows.map(|(key, counts)| (key, place, counts_of(counts))));
        }
        let keys = distinct(all.iter().map(|(key, ..)| *key).collect());
        let place_of = |key: &Key| keys.binary_search(key).unwrap_or_default() as u32;
        let rows = all.iter().map(|(key, window, counts)| (place_of(key), *window, *counts));
        let rows = sorted(rows.collect());
        let page = Self {
            metric,
            dimensions: windowed.dimensions,
            identity: windowed.identity,
            windows,
            values: windowed.dictionaries,
            keys,
            rows,
        };
        Ok(page.tidy())
    }

    /// Reads a whole page.
    ///
    /// # Errors
    /// `invalid_checkpoint` for a page of a later version, and for a damaged page.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let head = PageHead::parse(bytes)?;
        let range = head.bytes_of(0);
        let [start, end] =
            [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        let bytes = bytes.get(start..end).ok_or_else(damaged)?;
        head.check(0, bytes)?;
        let lengths: Vec<usize> = head.values.iter().map(|values| values.len()).collect();
        let (mut keys, mut rows): (Vec<Key>, Vec<Row>) = (Vec::new(), Vec::new());
        let mut bytes = Bytes::of(bytes);
        let mut counts = Vec::new();
        while !bytes.rest.is_empty() {
            let key = read_key(&mut bytes, &lengths).and_then(|key| {
                let mut own = bytes.part()?;
                read_counts(&mut own, &(0..head.windows.len()), &mut counts)?;
                Some(key)
            });
            let place = keys.len() as u32;
            keys.push(key.ok_or_else(damaged)?);
            rows.extend(counts.iter().map(|(window, counts)| (place, *window, *counts)));
        }
        if !keys.is_sorted_by(|one, other| one < other) {
            return Err(damaged());
        }
        Ok(Self {
            metric: head.metric,
            dimensions: head.dimensions,
            identity: head.identity,
            windows: head.windows,
            values: head.values,
            keys,
            rows,
        })
    }

    /// Returns whether the page has no windows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Keeps only the windows for which `is_kept` returns true.
    #[must_use]
    pub fn with_only(mut self, is_kept: impl Fn(Window) -> bool) -> Self {
        let mut next = 0;
        let places = self.windows.iter().map(|head| {
            is_kept(head.window).then(|| {
                next += 1;
                next - 1
            })
        });
        let places: Vec<Option<u32>> = places.collect();
        self.windows.retain(|head| is_kept(head.window));
        self.rows.retain_mut(|(_, window, _)| match places[*window as usize] {
            Some(place) => {
                *window = place;
                true
            }
            None => false,
        });
        self.tidy()
    }

    /// Merges a page that was read later. Each of its windows replaces all windows of this page that it overlaps.
    ///
    /// # Errors
    /// `incompatible_tables` for counts of another cluster, client or endpoint, or by other dimensions; `group_limit` if the
    /// values of a dimension take more than 1 GiB.
    pub fn with(self, later: Self) -> Result<Self> {
        let identity = later.identity.with(&self.identity, "have")?;
        if (self.metric, self.dimensions) != (later.metric, later.dimensions) {
            let message = "these are counts of another query";
            return Err(Error::new(Code::IncompatibleTables, message));
        }
        let is_replaced = |window: Window| {
            let mut later = later.windows.iter();
            later.any(|head| head.window.overlaps(window))
        };
        let earlier = self.with_only(|window| !is_replaced(window));
        let both = [earlier, later];
        let (mut values, mut ids) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (one, other) in both[0].values.iter().zip(&both[1].values) {
            let (union, each) = Dictionary::union(&[one, other]).ok_or_else(too_large)?;
            values.push(union);
            for (ids, own) in ids.iter_mut().zip(each) {
                ids.push(own);
            }
        }
        // Windows don't overlap, so the position of a window is the number of windows that begin before it.
        let places = [0, 1].map(|side| {
            let own = both[side].windows.iter().enumerate();
            let place = own.map(|(place, head)| {
                let start = head.window.start();
                let others = &both[1 - side].windows;
                place + others.partition_point(|other| other.window.start() < start)
            });
            place.collect::<Vec<usize>>()
        });
        let length = both.iter().map(|page| page.windows.len()).sum();
        let mut windows: Vec<Option<Head>> = vec![None; length];
        for (page, places) in both.iter().zip(&places) {
            for (head, place) in page.windows.iter().zip(places) {
                windows[*place] = Some(*head);
            }
        }
        let own_keys = [0, 1].map(|side| {
            let own = both[side].keys.iter();
            own.map(|key| translated(key, &ids[side])).collect::<Vec<Key>>()
        });
        let keys = distinct(own_keys.concat());
        let mut rows: Vec<Row> = Vec::with_capacity(both.iter().map(|page| page.rows.len()).sum());
        for (side, page) in both.iter().enumerate() {
            let place_of = |key: &Key| keys.binary_search(key).unwrap_or_default() as u32;
            let key_of: Vec<u32> = own_keys[side].iter().map(place_of).collect();
            let own = page.rows.iter();
            rows.extend(own.map(|(key, window, counts)| {
                (key_of[*key as usize], places[side][*window as usize] as u32, *counts)
            }));
        }
        Ok(Self {
            metric: both[1].metric,
            dimensions: both[1].dimensions,
            identity,
            rows: sorted(rows),
            windows: windows.into_iter().flatten().collect(),
            values,
            keys,
        })
    }

    /// Returns the page as bytes, with these sums. Leaves out sums by dimensions that the rows don't have.
    #[must_use]
    pub fn to_bytes(&self, sums: &[SumsBy]) -> Vec<u8> {
        let mut counts = Vec::new();
        let mut sets = vec![self.write_rows(&mut counts)];
        for of in sums {
            sets.extend(self.write_sums(of, &mut counts));
        }
        let mut totals = vec![Counts::default(); self.windows.len()];
        for (_, window, counts) in &self.rows {
            let total = &mut totals[*window as usize];
            *total = added(*total, *counts);
        }
        let head = PageHead {
            metric: self.metric,
            dimensions: self.dimensions,
            identity: self.identity.clone(),
            windows: self.windows.clone(),
            totals,
            values: self.values.clone(),
            sums: sets,
            length: 0,
        };
        let mut bytes = head.to_bytes();
        bytes.append(&mut counts);
        bytes
    }

    /// Writes the rows as the first set.
    fn write_rows(&self, out: &mut Vec<u8>) -> PageSums {
        let start = out.len();
        let (mut own, mut bytes) = (Vec::new(), Vec::new());
        for rows in self.rows.chunk_by(|one, other| one.0 == other.0) {
            own.clear();
            own.extend(rows.iter().map(|(_, window, counts)| (*window, *counts)));
            bytes.clear();
            write_counts(&mut bytes, self.windows.len(), &own);
            write_key(out, &self.keys[rows[0].0 as usize], self.values.len());
            number(out, bytes.len() as u64);
            out.extend(&bytes);
        }
        let of = SumsBy { by: self.dimensions.iter().collect(), only: Vec::new() };
        PageSums {
            of,
            groups: Vec::new(),
            bytes: start as u64..out.len() as u64,
            checksum: checksum(&out[start..]),
        }
    }

    /// Writes the sums by some dimensions. Returns `None` if the rows lack one of these dimensions.
    fn write_sums(&self, of: &SumsBy, out: &mut Vec<u8>) -> Option<PageSums> {
        let start = out.len();
        let column = |dimension: &Dimension| self.dimensions.position(*dimension);
        let columns = of.by.iter().map(column).collect::<Option<Vec<usize>>>()?;
        let mut only: Vec<(usize, Vec<bool>)> = Vec::new();
        for (dimension, values) in &of.only {
            let column = column(dimension)?;
            let is_wanted = |value: &str| values.iter().any(|wanted| wanted == value);
            only.push((column, self.values[column].values().map(is_wanted).collect()));
        }
        let windows = self.windows.len();
        let group_of = |row: &Key| {
            let mut own = only.iter();
            let is_in = own.all(|(column, is_wanted)| is_wanted[row[*column] as usize]);
            is_in.then(|| {
                let mut group = Key::default();
                for (id, column) in group.iter_mut().zip(&columns) {
                    *id = row[*column];
                }
                group
            })
        };
        let groups = distinct(self.keys.iter().filter_map(group_of).collect());
        let mut sums: Vec<Option<Counts>> = vec![None; groups.len() * windows];
        for rows in self.rows.chunk_by(|one, other| one.0 == other.0) {
            let group = group_of(&self.keys[rows[0].0 as usize]);
            let Some(place) = group.and_then(|group| groups.binary_search(&group).ok()) else {
                continue;
            };
            for (_, window, counts) in rows {
                let sum = &mut sums[place * windows + *window as usize];
                *sum = Some(added(sum.unwrap_or_default(), *counts));
            }
        }
        let (mut own, mut bytes) = (Vec::new(), Vec::new());
        for place in 0..groups.len() {
            let sums = sums[place * windows..(place + 1) * windows].iter();
            let sums = sums.zip(0..);
            own.clear();
            own.extend(sums.filter_map(|(sum, window)| Some((window, (*sum)?))));
            bytes.clear();
            write_counts(&mut bytes, windows, &own);
            number(out, bytes.len() as u64);
            out.extend(&bytes);
        }
        Some(PageSums {
            of: of.clone(),
            groups,
            bytes: start as u64..out.len() as u64,
            checksum: checksum(&out[start..]),
        })
    }

    /// Drops the keys and values that no row has.
    fn tidy(mut self) -> Self {
        let mut is_used = vec![false; self.keys.len()];
        for (key, ..) in &self.rows {
            is_used[*key as usize] = true;
        }
        let places = places_of(&is_used);
        let mut used = is_used.iter();
        self.keys.retain(|_| used.next() == Some(&true));
        for (key, ..) in &mut self.rows {
            *key = places[*key as usize];
        }
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for (column, values) in self.values.iter_mut().enumerate() {
            let mut is_used = vec![false; values.len()];
            for key in &self.keys {
                is_used[key[column] as usize] = true;
            }
            // The used values of a dictionary are still sorted and not too large, so this can't fail.
            let used = values.values().zip(&is_used).filter(|(_, is_used)| **is_used);
            let kept = Dictionary::of_sorted(used.map(|(value, _)| value));
            *values = Arc::new(kept.unwrap_or_default());
            ids.push(places_of(&is_used));
        }
        for key in &mut self.keys {
            *key = translated(key, &ids);
        }
        self
    }
}

/// Returns the position of each used item among all used items.
fn places_of(is_used: &[bool]) -> Vec<u32> {
    let mut next = 0_u32;
    let places = is_used.iter().map(|is_used| {
        next += u32::from(*is_used);
        next.saturating_sub(1)
    });
    places.collect()
}

/// Sorts rows by key, and rows with the same key by window. No two rows have the same key and window.
fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable_by_key(|(key, window, _)| (*key, *window));
    rows
}

/// Returns a key with other IDs: for each column, `ids` has the new ID of each old one.
pub(crate) fn translated(key: &Key, ids: &[impl AsRef<[u32]>]) -> Key {
    let mut new = Key::default();
    for ((new, old), ids) in new.iter_mut().zip(key).zip(ids) {
        *new = ids.as_ref()[*old as usize];
    }
    new
}
