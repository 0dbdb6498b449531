//! What judging needs for every kind of rule.

use std::ops::Range;

use super::odd::Odd;
use super::slots::Slots;
use crate::rules::rule::Rule;

/// What is judged.
#[derive(Clone, Debug)]
pub(crate) struct Judging<'j> {
    /// By which rule.
    pub(crate) rule: &'j Rule,
    /// The slots.
    pub(crate) slots: &'j Slots,
    /// For each slot, whether it is known and settled. Only such slots are learned from.
    pub(crate) finals: Vec<bool>,
    /// The slots that are judged.
    pub(crate) range: Range<usize>,
    /// How many groups are judged.
    pub(crate) groups: usize,
}

impl<'j> Judging<'j> {
    /// Judges some slots of so many groups.
    pub(crate) fn new(
        rule: &'j Rule,
        slots: &'j Slots,
        groups: usize,
        range: Range<usize>,
    ) -> Self {
        Self {
            rule,
            slots,
            finals: slots.final_ones(),
            range,
            groups,
        }
    }

    /// The slots that are judged and known.
    pub(crate) fn known(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.range.clone().filter(|slot| self.slots.known[*slot])
    }

    /// The share of windows that may be false alarms if there are to be at most `false_alarms` in 30 days. It is at
    /// most one in a thousand.
    pub(crate) fn rate_of(&self, false_alarms: f64) -> f64 {
        const MONTH: f64 = 30.0 * 86_400.0;
        (false_alarms * f64::from(self.slots.step.seconds()) / MONTH).clamp(1e-15, 0.001)
    }
}

/// What the judges have found.
#[derive(Debug)]
pub(crate) struct Sink {
    /// The group that is judged.
    pub(crate) group: u32,
    /// The first slot that is judged.
    start: usize,
    /// How many groups were judged, slot by slot.
    pub(crate) tests: Vec<u32>,
    /// What is bad.
    pub(crate) odds: Vec<Odd>,
}

impl Sink {
    /// For slots of a range.
    pub(crate) fn new(range: &Range<usize>) -> Self {
        Self {
            group: 0,
            start: range.start,
            tests: vec![0; range.len()],
            odds: Vec::new(),
        }
    }

    /// A window of the group was judged.
    pub(crate) fn judged(&mut self, slot: usize) {
        self.tests[slot - self.start] += 1;
    }

    /// A window of the group is bad.
    pub(crate) fn take(&mut self, odd: Odd) {
        self.odds.push(Odd {
            group: self.group,
            ..odd
        });
    }

    /// How many groups were judged in a slot.
    pub(crate) fn tests_of(&self, slot: usize) -> usize {
        self.tests[slot - self.start] as usize
    }
}
