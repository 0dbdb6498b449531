//! Iterates over all samples of an export, in the order of its format or in an order that the caller has chosen.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tallyfold::{Deltas, Key, Window, WindowRows};

use crate::form::Order;
use crate::sample::Sample;

/// A row of one of several sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The position of the source.
    pub source: usize,
    /// The position of the row among all rows of that source, window after window, including the rows of windows that
    /// are left out.
    pub row: usize,
}

/// An iterator over all samples. Its size grows with the number of windows and of chosen rows, not with the number of all rows.
#[derive(Clone)]
pub(crate) struct Walk {
    order: Order,
    is_change: bool,
    /// The exported windows of each source, with none of their rows read.
    sources: Arc<[Vec<WindowRows>]>,
    /// The rows to read, if the caller has chosen them.
    chosen: Option<Chosen>,
    /// The source of the last group that was read.
    pub(crate) source: usize,
    /// The number of completed rounds over all samples.
    pub(crate) round: usize,
    /// The windows that are being read, each with its next row.
    heads: BinaryHeap<Head>,
    /// The position of the source's first window that is not open yet.
    next_window: usize,
}

/// Rows that the caller has chosen, in the caller's order.
#[derive(Clone)]
struct Chosen {
    places: Arc<[Place]>,
    next: usize,
    /// All windows of each source, including the windows that are left out.
    sources: Arc<[Vec<WindowRows>]>,
    /// For each source, the position of the first row after each window.
    ends: Arc<[Vec<usize>]>,
    leaves_out_unsettled: bool,
}

/// The next row of a window.
#[derive(Clone)]
struct Head {
    key: Key,
    window: usize,
    counts: Deltas,
    rest: WindowRows,
}

impl Walk {
    /// Iterates over all samples of the sources: one source after the other or, for [`Order::Counts`], all sources in
    /// each of three rounds.
    pub(crate) fn new(sources: Arc<[Vec<WindowRows>]>, order: Order, is_change: bool) -> Self {
        let mut walk = Self {
            order,
            is_change,
            sources,
            chosen: None,
            source: 0,
            round: 0,
            heads: BinaryHeap::new(),
            next_window: 0,
        };
        walk.open();
        walk
    }

    /// Restricts the walk to the rows at these places, in this order. Rows of windows that are left out are skipped.
    /// Returns `None` if one of the rows does not exist.
    pub(crate) fn choosing(
        mut self,
        places: Vec<Place>,
        sources: Arc<[Vec<WindowRows>]>,
        leaves_out_unsettled: bool,
    ) -> Option<Self> {
        let ends = sources.iter().map(|windows| {
            let lengths = windows.iter().map(|rows| rows.clone().count());
            let ends = lengths.scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            ends.collect::<Vec<usize>>()
        });
        let ends: Arc<[Vec<usize>]> = ends.collect();
        let is_there = |place: &Place| {
            let rows = ends.get(place.source).map(|ends| ends.last().copied());
            rows.flatten().is_some_and(|rows| place.row < rows)
        };
        if !places.iter().all(is_there) {
            return None;
        }
        self.chosen =
            Some(Chosen { places: places.into(), next: 0, sources, ends, leaves_out_unsettled });
        Some(self)
    }

    /// Opens all windows of the source or, for [`Order::Windows`], only the next one that has rows.
    fn open(&mut self) {
        let windows = self.sources.get(self.source);
        for rows in windows.into_iter().flatten().skip(self.next_window) {
            let window = self.next_window;
            self.next_window += 1;
            let mut rest = rows.clone();
            if let Some((key, counts)) = rest.next() {
                self.heads.push(Head { key, window, counts, rest });
                if self.order == Order::Windows {
                    return;
                }
            }
        }
    }

    /// Moves to the next source. After the last source, [`Order::Counts`] begins the next round with the first one.
    /// Returns `false` if nothing is left.
    fn advance(&mut self) -> bool {
        if self.source + 1 < self.sources.len() {
            self.source += 1;
        } else if self.order == Order::Counts && self.round < 2 {
            self.round += 1;
            self.source = 0;
        } else {
            return false;
        }
        self.next_window = 0;
        self.open();
        true
    }

    /// Reads up to `most` samples of the next group into `samples`. Returns the key of the group; `None` after the last group.
    pub(crate) fn next(&mut self, most: usize, samples: &mut Vec<Sample>) -> Option<Key> {
        samples.clear();
        if self.chosen.is_some() {
            let (key, sample) = self.next_chosen()?;
            samples.push(sample);
            return Some(key);
        }
        let mut of = None;
        while samples.len() < most {
            let Some(mut head) = self.heads.peek_mut() else {
                if of.is_some() || !self.advance() {
                    break;
                }
                continue;
            };
            if of.is_some_and(|key| key != head.key) {
                break;
            }
            let sample = Sample::new(&head.rest, head.counts, self.is_change);
            if !sample.is_nothing() {
                of = Some(head.key);
                samples.push(sample);
            }
            match head.rest.next() {
                Some((key, counts)) => (head.key, head.counts) = (key, counts),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                    if self.order == Order::Windows {
                        self.open();
                    }
                }
            }
            if of.is_some() && self.order == Order::Windows {
                break;
            }
        }
        of
    }

    /// The sample at the next place that the caller has chosen. Skips a sample whose changes are all 0.
    fn next_chosen(&mut self) -> Option<(Key, Sample)> {
        let chosen = self.chosen.as_mut()?;
        loop {
            let Place { source, row } = *chosen.places.get(chosen.next)?;
            chosen.next += 1;
            let ends = chosen.ends.get(source)?;
            let window = ends.partition_point(|end| *end <= row);
            let start = window.checked_sub(1).map_or(0, |before| ends[before]);
            let rows = chosen.sources.get(source)?.get(window)?;
            if chosen.leaves_out_unsettled && !rows.settled {
                continue;
            }
            let mut rows = rows.clone();
            let (key, counts) = rows.nth(row - start)?;
            let sample = Sample::new(&rows, counts, self.is_change);
            if !sample.is_nothing() {
                self.source = source;
                return Some((key, sample));
            }
        }
    }
}

/// The counts of a group in one window, or their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The position of the source.
    pub source: usize,
    /// The window.
    pub window: Window,
    /// Whether the counts are complete and no longer change; for changes, whether no other revision of the window follows.
    pub settled: bool,
    /// The position of each value in the dictionary of its dimension.
    pub key: Key,
    /// The counts, or their changes.
    pub counts: Deltas,
}

/// Iterates over the samples of an export as values, in the order of the export. This is for callers that write the
/// samples in another form, such as columns. Its size does not grow with the number of rows, except with the rows that
/// the caller has chosen.
#[derive(Clone)]
pub struct Samples {
    walk: Walk,
    scratch: Vec<Sample>,
}

impl Samples {
    pub(crate) fn new(walk: Walk) -> Self {
        Self { walk, scratch: Vec::new() }
    }
}

impl Iterator for Samples {
    type Item = Counted;

    fn next(&mut self) -> Option<Counted> {
        let key = self.walk.next(1, &mut self.scratch)?;
        let sample = self.scratch.first()?;
        Some(Counted {
            source: self.walk.source,
            window: sample.window,
            settled: sample.settled,
            key,
            counts: sample.counts(),
        })
    }
}

/// `BinaryHeap` returns the largest element first, so the order is reversed: the smallest key and, among equal keys, the
/// first window.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.key, other.window).cmp(&(self.key, self.window))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}
