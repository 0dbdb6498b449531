//! Judges the windows of all groups of several rules, and reads their counts together.

use std::ops::Range;

use tallyfold::Dimension;

use crate::columns::blocks::{Block, read};
use crate::columns::groups::{Grid, NO_GROUP};
use crate::columns::slots::Slots;
use crate::rules::judging::{Groups, Judging, Odd, Other, Seen, Sink};
use crate::rules::kind::Scope;
use crate::rules::rule::Rule;
use crate::rules::set::LocalDays;

/// The result of judging some windows by a rule.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The bad windows of all groups, sorted by group, then by slot.
    pub(crate) odds: Vec<Odd>,
    /// What the judged windows of groups with a finding showed, sorted by group, then by slot.
    pub(crate) seen: Vec<Seen>,
    /// How many windows were judged. A window counts once for each group.
    pub(crate) judged: u64,
}

impl Judged {
    /// Returns the results of a group.
    pub(crate) fn of(&self, group: usize) -> Results<'_> {
        Results {
            odds: part_of(&self.odds, |odd| odd.group as usize, group),
            seen: part_of(&self.seen, |seen| seen.group as usize, group),
        }
    }
}

/// The results of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Results<'r> {
    /// The bad windows, in chronological order.
    pub(crate) odds: &'r [Odd],
    /// What the judged windows showed, in chronological order.
    pub(crate) seen: &'r [Seen],
}

/// Returns the entries of a group. `all` is sorted by group.
fn part_of<T>(all: &[T], group_of: impl Fn(&T) -> usize, group: usize) -> &[T] {
    let start = all.partition_point(|one| group_of(one) < group);
    let end = all.partition_point(|one| group_of(one) <= group);
    &all[start..end]
}

/// What a rule judges: some slots, and the earlier slots that it compares them with.
pub(crate) struct Work<'w> {
    pub(crate) rule: &'w Rule,
    pub(crate) grid: &'w Grid<'w>,
    /// The counts of the other endpoint, for a rule that compares both.
    pub(crate) other: Option<Other<'w>>,
    /// All calendars of the rules file.
    pub(crate) calendars: &'w [LocalDays],
    /// Whether any rule reports days off. If so, the other rules ignore days off.
    pub(crate) may_be_off: bool,
    /// The groups whose findings continue, sorted.
    pub(crate) watched: Vec<u32>,
    /// The slots that the rule reads.
    pub(crate) slots: Slots,
    /// The range of the judged slots in `slots`.
    pub(crate) range: Range<usize>,
    /// How many slots of the table were left out before `slots`.
    pub(crate) skipped: usize,
}

/// Some groups of a rule that are judged together.
struct Piece {
    /// The position of the rule.
    rule: usize,
    groups: Range<usize>,
    /// How many numbers the counts of these groups take in memory.
    numbers: usize,
}

/// The maximum number of counts in memory at a time: 32 MiB.
const NUMBERS: usize = 1 << 22;

/// The maximum number of counts in memory at a time if the table is kept outside of memory: 8 MiB.
const KEPT_NUMBERS: usize = 1 << 20;

/// Judges several rules. It reads the counts of as many rules at a time as fit into memory.
pub(crate) fn judge_together(works: &[Work<'_>]) -> Vec<Judged> {
    let judgings: Vec<Judging<'_>> = works.iter().map(Work::judging).collect();
    let mut sinks: Vec<Sink> = works.iter().map(Work::sink).collect();
    let pieces = works
        .iter()
        .enumerate()
        .flat_map(|(at, work)| work.pieces(at));
    let mut pieces: Vec<Piece> = pieces.collect();
    // Rules about the same table are judged together.
    pieces.sort_by_key(|piece| works[piece.rule].rule.metric);
    let mut rest = pieces.as_slice();
    while let Some(first) = rest.first() {
        let mut numbers = 0;
        let metric = works[first.rule].rule.metric;
        let fits = rest.iter().take_while(|piece| {
            numbers += piece.numbers;
            let work = &works[piece.rule];
            work.rule.metric == metric && numbers <= work.numbers()
        });
        let (together, later) = rest.split_at(fits.count().max(1));
        let blocks = together.iter().map(|piece| works[piece.rule].block(piece));
        let mut blocks: Vec<Block<'_>> = blocks.collect();
        read(works[first.rule].grid.counted(), &mut blocks);
        for (piece, block) in together.iter().zip(&blocks) {
            let work = &works[piece.rule];
            work.groups(
                &judgings[piece.rule],
                piece.groups.clone(),
                block,
                &mut sinks[piece.rule],
            );
        }
        rest = later;
    }
    let all = works.iter().zip(&judgings).zip(sinks);
    all.map(|((work, judging), sink)| work.judged(judging, sink))
        .collect()
}

impl Work<'_> {
    fn sink(&self) -> Sink {
        Sink::new(&self.range, self.watched.clone())
    }

    fn judging(&self) -> Judging<'_> {
        let by = (self.rule.measure, self.rule.fewest());
        let mut judging = Judging::new(by, &self.slots, self.grid.len(), self.range.clone());
        let mut dimensions = self.rule.dimensions();
        judging.is_of_sources = dimensions.all(|own| own == Dimension::WriteKey);
        judging.may_be_off = self.may_be_off;
        let calendars = self.calendars.iter().filter(|own| own.is_of(self.rule));
        let calendars: Vec<&LocalDays> = calendars.collect();
        if calendars.is_empty() {
            return judging;
        }
        let of_group = |group: usize| {
            let names = self.rule.by.iter().copied();
            let values: Vec<(Dimension, &str)> = names.zip(self.grid.values(group)).collect();
            let own = calendars
                .iter()
                .position(|one| one.covers(self.rule, &values));
            own.map_or(0, |place| place + 1)
        };
        let calendar_of = (0..self.grid.len()).map(of_group).collect();
        judging.with_calendars(calendars.iter().map(|own| &own.local), calendar_of)
    }

    /// Returns the maximum number of counts in memory at a time.
    fn numbers(&self) -> usize {
        match self.grid.counted().is_kept() {
            true => KEPT_NUMBERS,
            false => NUMBERS,
        }
    }

    /// Returns the groups in pieces whose counts fit into memory.
    fn pieces(&self, rule: usize) -> impl Iterator<Item = Piece> + use<> {
        let is_read = !self.range.is_empty() && self.rule.form().scope != Scope::Totals;
        let groups = if is_read { self.grid.len() } else { 0 };
        let each = self.slots.len().max(1) * if self.rule.measure.is_rate() { 2 } else { 1 };
        let most = (self.numbers() / each).max(1);
        (0..groups).step_by(most).map(move |start| {
            let groups = start..groups.min(start + most);
            let numbers = groups.len().saturating_mul(each);
            Piece {
                rule,
                groups,
                numbers,
            }
        })
    }

    fn block(&self, piece: &Piece) -> Block<'_> {
        let (start, length) = (piece.groups.start as u32, piece.groups.len() as u32);
        let place_of = |group: u32| match group.checked_sub(start) {
            Some(place) if place < length => place,
            _ => NO_GROUP,
        };
        let measure = self.rule.measure;
        Block::new(self.grid, &self.slots, measure, length as usize, place_of)
    }

    /// Judges some groups.
    fn groups(
        &self,
        judging: &Judging<'_>,
        range: Range<usize>,
        block: &Block<'_>,
        sink: &mut Sink,
    ) {
        let groups = Groups {
            grid: self.grid,
            range,
            block,
            other: self.other.as_ref(),
        };
        self.rule.test.judge().groups(judging, &groups, sink);
    }

    /// Returns the result, with slots numbered as in the whole table.
    fn judged(&self, judging: &Judging<'_>, mut sink: Sink) -> Judged {
        self.rule.test.judge().all(judging, self.grid, &mut sink);
        sink.close();
        for odd in &mut sink.odds {
            odd.slot += self.skipped as u32;
        }
        for seen in &mut sink.seen {
            seen.slot += self.skipped as u32;
        }
        Judged {
            judged: sink.tests.iter().map(|tests| u64::from(*tests)).sum(),
            odds: sink.odds,
            seen: sink.seen,
        }
    }
}
