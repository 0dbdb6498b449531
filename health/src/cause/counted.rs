//! The leaves of a rate as columns of numbers: observed and expected counts.

use super::distinct::Distinct;
use super::element::Element;
use super::leaves::{Leaves, Tally};

/// This many events with the overall rate before are added to the reference of each leaf. So a leaf with little history
/// is expected to have the overall rate, and a leaf with a hundred times as many events its own earlier rate.
const PRIOR: f64 = 70.0;

/// One leaf: numbers only for ranking and weighing, so they are floats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    /// How many events of the part came.
    pub(crate) came: f64,
    /// How many were expected.
    pub(crate) expected: f64,
    /// How many events they are a share of.
    pub(crate) whole: f64,
    /// How many events of the part the expectation was learned from.
    pub(crate) known: f64,
}

/// Leaves that have events now, in the order of their values, no two of them alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// How many values each attribute has.
    pub(crate) sizes: Vec<usize>,
    /// For each attribute and leaf, the position of its value.
    pub(crate) ids: Vec<Vec<u32>>,
    /// The leaves.
    pub(crate) leaves: Vec<Leaf>,
    /// Whether the part was more than half of all events. Then the other events are counted instead, because they are
    /// fewer and vary less.
    pub(crate) is_other_part: bool,
}

impl Counted {
    /// Counts the part of each leaf.
    pub(crate) fn of(leaves: &Leaves) -> Self {
        let distinct = Distinct::of(leaves);
        let sides = [&distinct.before, &distinct.now];
        let [before, now] = sides.map(|tallies| sum(tallies.iter().copied()));
        let has_no_other_part = leaves.attributes.iter().any(|one| one.of_part);
        let is_above_half = is_above_half(if before.whole > 0.0 { before } else { now });
        let is_other_part = is_above_half && !has_no_other_part;
        let rate = rate(before, is_other_part);
        let all = distinct.before.iter().zip(&distinct.now);
        let leaf = |(before, now): (&Tally, &Tally)| Leaf::of(*before, *now, rate, is_other_part);
        let counted = Self {
            sizes: leaves
                .attributes
                .iter()
                .map(|one| one.values.len())
                .collect(),
            leaves: all.map(leaf).collect(),
            ids: distinct.ids,
            is_other_part,
        };
        let has_events: Vec<bool> = counted.leaves.iter().map(|leaf| leaf.whole > 0.0).collect();
        counted.chosen(&has_events)
    }

    /// Whether a leaf belongs to a combination.
    pub(crate) fn is_in(&self, leaf: usize, element: Element) -> bool {
        element.is_of(|place| self.ids[place][leaf])
    }

    /// The same without the leaves of a combination.
    pub(crate) fn without(&self, element: Element) -> Self {
        let stay: Vec<bool> = (0..self.leaves.len())
            .map(|leaf| !self.is_in(leaf, element))
            .collect();
        self.chosen(&stay)
    }

    fn chosen(&self, stay: &[bool]) -> Self {
        Self {
            sizes: self.sizes.clone(),
            ids: self.ids.iter().map(|ids| chosen(ids, stay)).collect(),
            leaves: chosen(&self.leaves, stay),
            is_other_part: self.is_other_part,
        }
    }
}

fn chosen<T: Copy>(of: &[T], stay: &[bool]) -> Vec<T> {
    let all = of.iter().zip(stay);
    all.filter(|(_, stays)| **stays)
        .map(|(one, _)| *one)
        .collect()
}

/// The counts of several leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    part: f64,
    whole: f64,
}

fn sum(tallies: impl Iterator<Item = Tally>) -> Sum {
    tallies.fold(Sum::default(), |sum, tally| Sum {
        part: sum.part + tally.part as f64,
        whole: sum.whole + tally.whole as f64,
    })
}

impl Sum {
    /// The part that is counted.
    fn counted(self, is_other_part: bool) -> f64 {
        if is_other_part {
            self.whole - self.part
        } else {
            self.part
        }
    }
}

fn is_above_half(sum: Sum) -> bool {
    sum.part > 0.5 * sum.whole
}

/// The overall rate. It is above 0 even if no event was seen.
fn rate(before: Sum, is_other_part: bool) -> f64 {
    (before.counted(is_other_part) + 0.5) / (before.whole + 1.0)
}

impl Leaf {
    fn of(before: Tally, now: Tally, rate: f64, is_other_part: bool) -> Self {
        let counted = |tally: Tally| {
            let other = tally.whole.saturating_sub(tally.part);
            (if is_other_part { other } else { tally.part }) as f64
        };
        let known = counted(before) + PRIOR * rate;
        let whole = now.whole as f64;
        Self {
            came: counted(now),
            expected: whole * known / (before.whole as f64 + PRIOR),
            whole,
            known,
        }
    }
}
