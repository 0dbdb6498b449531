//! What is expected of the windows of a group.

use std::ops::Range;

use crate::baseline::levels::Levels;
use crate::baseline::sample::Windows;
use crate::baseline::stream::{Level, Season, Stream};
use crate::rules::judging::Judging;
use crate::rules::rule::{ANEW, WARM_UP};

/// The levels of some slots of a group.
#[derive(Debug)]
pub(super) struct Expected {
    first: usize,
    levels: Vec<Option<Level>>,
}

impl Expected {
    /// The levels of the slots of a range, as the windows before them predict.
    ///
    /// How much a stream varies is learned window after window. Learning restarts each week, counted from 1970, so that
    /// a check of one window and a replay of many give the same levels.
    pub(super) fn of(
        judging: &Judging<'_>,
        season: &Season,
        stream: &Stream<'_>,
        range: Range<usize>,
    ) -> Self {
        let slots = judging.slots;
        let (anew, warm_up) = (slots.in_seconds(ANEW), slots.in_seconds(WARM_UP));
        let looked_back = looked_back(season, warm_up);
        let first = slots.begin_of(range.start, anew);
        let first = first.saturating_sub(looked_back);
        let windows = Windows::new(&part_of(stream, first..range.end), season);
        let mut levels = Vec::with_capacity(range.len());
        let mut start = range.start;
        while start < range.end {
            let begin = slots.begin_of(start, anew);
            let end = slots.end_of(start, anew).min(range.end);
            if slots.known[start..end].contains(&true) {
                let history = looked_back.min(begin);
                let own = windows.part(begin - history - first..end - first);
                let is_rate = stream.wholes.is_some();
                let own = Levels::of(own, is_rate, season, (history, warm_up));
                levels.extend(own.skip(start - begin).take(end - start));
            }
            levels.resize(end - range.start, None);
            start = end;
        }
        Self {
            first: range.start,
            levels,
        }
    }

    /// The level of a slot, if there is enough history.
    pub(super) fn at(&self, slot: usize) -> Option<&Level> {
        self.levels.get(slot.checked_sub(self.first)?)?.as_ref()
    }
}

/// How many slots before a beginning are read: those from which the variance is learned, and the history that the first
/// of them needs.
fn looked_back(season: &Season, warm_up: usize) -> usize {
    season
        .seasons
        .saturating_mul(season.period)
        .saturating_add(season.neighbours)
        .saturating_add(warm_up)
}

/// Some slots of a stream.
fn part_of<'s>(stream: &Stream<'s>, range: Range<usize>) -> Stream<'s> {
    Stream {
        counts: &stream.counts[range.clone()],
        wholes: stream.wholes.map(|wholes| &wholes[range.clone()]),
        known: &stream.known[range],
    }
}
