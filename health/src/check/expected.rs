//! What is expected of the windows of a group.

use std::ops::Range;

use super::judging::Judging;
use crate::baseline::expectation::Level;
use crate::baseline::levels::Levels;
use crate::baseline::season::Season;
use crate::baseline::stream::Stream;

/// The levels of some slots of a group.
#[derive(Debug)]
pub(super) struct Expected {
    first: usize,
    levels: Vec<Option<Level>>,
}

impl Expected {
    /// What the windows before let expect of each slot of a range.
    ///
    /// How much a stream varies is learned window after window. This begins anew each four seasons, counted from 1970, so that
    /// a check of one window and a replay of many expect the same.
    pub(super) fn of(
        judging: &Judging<'_>,
        season: &Season,
        stream: &Stream<'_>,
        range: Range<usize>,
    ) -> Self {
        let length = season.period.saturating_mul(4);
        let mut levels = Vec::with_capacity(range.len());
        let mut start = range.start;
        while start < range.end {
            let begin = judging.slots.begin_of(start, length);
            let end = judging.slots.end_of(start, length).min(range.end);
            if judging.slots.known[start..end].contains(&true) {
                let history = looked_back(season).min(begin);
                let before = part_of(stream, begin - history..end);
                let own = Levels::new(&before, season, history);
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

/// How many slots before a level are looked at, and more: the season from which the variance is learned, and its own history.
fn looked_back(season: &Season) -> usize {
    let seasons = season.seasons.max(2).saturating_add(2);
    seasons
        .saturating_mul(season.period)
        .saturating_add(season.neighbours)
}

/// Some slots of a stream.
fn part_of<'s>(stream: &Stream<'s>, range: Range<usize>) -> Stream<'s> {
    Stream {
        counts: &stream.counts[range.clone()],
        wholes: stream.wholes.map(|wholes| &wholes[range.clone()]),
        known: &stream.known[range],
    }
}
