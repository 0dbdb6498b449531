//! Judges the windows of all groups of a rule.

use super::burning::burning;
use super::discovery::discover;
use super::grid::Grid;
use super::judging::{Judging, Sink};
use super::limits::limits;
use super::odd::Odd;
use super::presence::{new, vanished};
use super::silent::silent;
use super::totals::totals;
use super::undelivered::{Delivery, undelivered};
use super::usual::usual;
use crate::rules::rule::Test;

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
pub(crate) fn judge(
    judging: &Judging<'_>,
    grid: &Grid<'_>,
    delivery: Option<&Delivery<'_>>,
) -> Judged {
    let mut sink = Sink::new(&judging.range);
    match (&judging.rule.test, delivery) {
        (Test::Reconciliation, _) => totals(judging, grid, &mut sink),
        (Test::Baseline(baseline), _) => {
            groups(judging, grid, None, &mut sink);
            discover(&mut sink, judging.rate_of(baseline.false_alarms));
        }
        (_, delivery) => groups(judging, grid, delivery, &mut sink),
    }
    Judged {
        judged: sink.tests.iter().map(|tests| u64::from(*tests)).sum(),
        odds: sink.odds,
    }
}

/// Judges group by group.
fn groups(
    judging: &Judging<'_>,
    grid: &Grid<'_>,
    delivery: Option<&Delivery<'_>>,
    sink: &mut Sink,
) {
    let (rule, slots) = (judging.rule, judging.slots);
    for groups in grid.blocks(slots.len()) {
        let block = grid.block(groups.clone(), slots, rule.measure);
        if let Some(delivery) = delivery {
            let ingested = |place: usize| block.columns(place).parts.to_vec();
            undelivered(judging, delivery, grid, groups, &ingested, sink);
            continue;
        }
        for (place, group) in groups.enumerate() {
            let columns = block.columns(place);
            sink.group = group as u32;
            match &rule.test {
                Test::Limits(of) => limits(judging, of, columns, sink),
                Test::Baseline(of) => usual(judging, of, columns, sink),
                Test::Silent(of) => silent(judging, of, columns, sink),
                Test::Vanished { over, history } => {
                    vanished(judging, (*over, *history), columns, sink);
                }
                Test::New { history } => new(judging, *history, columns, sink),
                Test::Budget { budget, burns } => burning(judging, *budget, burns, columns, sink),
                // They are judged by more than their columns.
                Test::Undelivered | Test::Reconciliation => {}
            }
        }
    }
}
