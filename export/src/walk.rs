//! Goes through all samples in the order that a format wants.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tallyfold::{Deltas, Key, WindowRows};

use crate::form::Order;
use crate::sample::Sample;

/// Goes through all samples. Its size grows with the number of windows, not of rows.
#[derive(Clone)]
pub(crate) struct Walk {
    order: Order,
    is_change: bool,
    /// All windows, with none of their rows read.
    all: Arc<[WindowRows]>,
    /// How many times all samples were gone through.
    pub(crate) round: usize,
    /// The windows in reading, and the next row of each.
    heads: BinaryHeap<Head>,
    /// The windows after those.
    next_window: usize,
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
    pub(crate) fn new(windows: Vec<WindowRows>, order: Order, is_change: bool) -> Self {
        Self::of(windows.into(), order, is_change)
    }

    fn of(all: Arc<[WindowRows]>, order: Order, is_change: bool) -> Self {
        let mut walk = Self {
            order,
            is_change,
            all,
            round: 0,
            heads: BinaryHeap::new(),
            next_window: 0,
        };
        walk.open();
        walk
    }

    /// The same samples from the beginning, once and window after window, which is the fastest order.
    pub(crate) fn by_windows(&self) -> Self {
        Self::of(Arc::clone(&self.all), Order::Windows, self.is_change)
    }

    /// Opens all windows, or the next one that has rows, as the order wants.
    fn open(&mut self) {
        while self.next_window < self.all.len() {
            let window = self.next_window;
            self.next_window += 1;
            let mut rest = self.all[window].clone();
            if let Some((key, counts)) = rest.next() {
                self.heads.push(Head {
                    key,
                    window,
                    counts,
                    rest,
                });
                if self.order == Order::Windows {
                    return;
                }
            }
        }
    }

    /// Goes to the next round, if the order has one.
    fn begin_round(&mut self) -> bool {
        let more = self.order == Order::Counts && self.round < 2;
        if more {
            self.round += 1;
            self.next_window = 0;
            self.open();
        }
        more
    }

    /// Reads the next group into `samples`, at most as many as `most`. Gives its key; `None` after the last one.
    pub(crate) fn next(&mut self, most: usize, samples: &mut Vec<Sample>) -> Option<Key> {
        samples.clear();
        let mut of = None;
        while samples.len() < most {
            let Some(mut head) = self.heads.peek_mut() else {
                if of.is_some() || !self.begin_round() {
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
}

/// The smallest key comes first, and among equal ones the first window.
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
