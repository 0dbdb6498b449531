//! Judges the windows of all groups of a rule.

use std::ops::Range;

use super::grid::Grid;
use super::limits::limits;
use super::odd::Odd;
use super::slots::Slots;
use crate::rules::rule::{Rule, Test};

/// What a rule says about some windows.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Windows of groups that are bad, sorted by group, then by slot.
    pub(crate) odds: Vec<Odd>,
    /// How many windows of groups were judged.
    pub(crate) judged: u64,
}

impl Judged {
    /// Those of a group.
    pub(crate) fn of(&self, group: usize) -> &[Odd] {
        let start = self
            .odds
            .partition_point(|odd| (odd.group as usize) < group);
        let end = self.odds.partition_point(|odd| odd.group as usize <= group);
        &self.odds[start..end]
    }
}

/// Judges windows of a table.
pub(crate) fn judge(rule: &Rule, grid: &Grid<'_>, slots: &Slots, range: Range<usize>) -> Judged {
    let mut judged = Judged::default();
    for groups in grid.blocks(slots.len()) {
        let block = grid.block(groups.clone(), slots, rule.measure);
        for group in groups {
            let columns = block.columns(group);
            let odds = &mut judged.odds;
            let mut take = |odd: Odd| {
                odds.push(Odd {
                    group: group as u32,
                    ..odd
                })
            };
            judged.judged += match &rule.test {
                Test::Limits(of) => limits(rule, of, columns, slots, range.clone(), &mut take),
                _ => 0,
            };
        }
    }
    judged
}
