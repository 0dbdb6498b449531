//! Judges the windows of all groups of a rule.

use std::ops::Range;

use crate::columns::groups::{Block, Grid, NO_GROUP, read};
use crate::columns::slots::Slots;
use crate::rules::judging::{Delivery, Groups, Judging, Odd, Sink};
use crate::rules::kind::Scope;
use crate::rules::rule::Rule;

/// The result of judging some windows by a rule.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The bad windows of all groups, sorted by group, then by slot.
    pub(crate) odds: Vec<Odd>,
    /// How many windows were judged, counted for each group.
    pub(crate) judged: u64,
}

impl Judged {
    /// The bad windows of a group.
    pub(crate) fn of(&self, group: usize) -> &[Odd] {
        let start = self
            .odds
            .partition_point(|odd| (odd.group as usize) < group);
        let end = self.odds.partition_point(|odd| odd.group as usize <= group);
        &self.odds[start..end]
    }
}

/// What a rule judges: some slots, and the earlier slots that the rule looks back on.
pub(crate) struct Work<'w> {
    pub(crate) rule: &'w Rule,
    pub(crate) grid: &'w Grid<'w>,
    /// The counts of delivery, for a rule that compares ingestion with delivery.
    pub(crate) delivery: Option<Delivery<'w>>,
    /// The slots that the rule looks at.
    pub(crate) slots: Slots,
    /// The slots among them that are judged.
    pub(crate) range: Range<usize>,
    /// How many slots were left out before them.
    pub(crate) skipped: usize,
}

/// Some groups of a rule that are judged together.
struct Piece {
    /// The position of the rule.
    rule: usize,
    groups: Range<usize>,
    /// How many numbers are needed for the counts of these groups.
    numbers: usize,
}

/// The maximum number of counts that are held at a time: 32 MiB.
const NUMBERS: usize = 1 << 22;

/// Judges rules. Their counts are read together, as many at a time as fit into memory.
pub(crate) fn judge_together(works: &[Work<'_>]) -> Vec<Judged> {
    let judgings: Vec<Judging<'_>> = works.iter().map(Work::judging).collect();
    let mut sinks: Vec<Sink> = works.iter().map(|work| Sink::new(&work.range)).collect();
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
            works[piece.rule].rule.metric == metric && numbers <= NUMBERS
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
    fn judging(&self) -> Judging<'_> {
        let by = (self.rule.measure, self.rule.fewest());
        Judging::new(by, &self.slots, self.grid.len(), self.range.clone())
    }

    /// The groups, as many at a time as fit into memory.
    fn pieces(&self, rule: usize) -> impl Iterator<Item = Piece> + use<> {
        let is_read = !self.range.is_empty() && self.rule.form().scope != Scope::Totals;
        let groups = if is_read { self.grid.len() } else { 0 };
        let each = self.slots.len().max(1) * if self.rule.measure.is_rate() { 2 } else { 1 };
        let most = (NUMBERS / each).max(1);
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
            delivery: self.delivery.as_ref(),
        };
        self.rule.test.judge().groups(judging, &groups, sink);
    }

    /// The result, with slots numbered as in the whole table.
    fn judged(&self, judging: &Judging<'_>, mut sink: Sink) -> Judged {
        self.rule.test.judge().all(judging, self.grid, &mut sink);
        for odd in &mut sink.odds {
            odd.slot += self.skipped as u32;
        }
        Judged {
            judged: sink.tests.iter().map(|tests| u64::from(*tests)).sum(),
            odds: sink.odds,
        }
    }
}
