//! The leaves of a rate as columns of numbers: what came and what was expected.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::element::Element;
use super::leaves::{Leaves, Tally};

/// As many events of everything's reference are added to the reference of each leaf. So a leaf of which little is known is
/// expected to be like everything, and one with a hundred times as many events as it was itself.
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
    /// Whether the part was more than half of everything, so that the other part is counted in its place: its events are
    /// fewer, and vary less.
    pub(crate) is_other_part: bool,
}

impl Counted {
    /// Counts the part of each leaf.
    pub(crate) fn of(leaves: &Leaves) -> Self {
        let rows = Rows::of(leaves).sharing_wholes(leaves);
        let [before, now] = rows.totals();
        let has_no_other_part = leaves.attributes.iter().any(|one| one.of_part);
        let is_above_half = is_above_half(if before.whole > 0.0 { before } else { now });
        let is_other_part = is_above_half && !has_no_other_part;
        let mut counted = Self {
            sizes: leaves
                .attributes
                .iter()
                .map(|one| one.values.len())
                .collect(),
            ids: vec![Vec::new(); leaves.attributes.len()],
            leaves: Vec::new(),
            is_other_part,
        };
        let rate = rate(before, is_other_part);
        for row in rows.0.iter().filter(|row| row.now.whole > 0.0) {
            for (ids, id) in counted.ids.iter_mut().zip(row.ids) {
                ids.push(id);
            }
            counted.leaves.push(row.leaf(rate, is_other_part));
        }
        counted
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
        Self {
            sizes: self.sizes.clone(),
            ids: self.ids.iter().map(|ids| chosen(ids, &stay)).collect(),
            leaves: chosen(&self.leaves, &stay),
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

impl Sum {
    fn of(tally: Tally) -> Self {
        Self {
            part: tally.part as f64,
            // A part is never larger than its whole; rows that say otherwise are read so that it holds.
            whole: tally.whole.max(tally.part) as f64,
        }
    }

    fn add(&mut self, other: Self) {
        self.part += other.part;
        self.whole += other.whole;
    }

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

/// The rate of everything: above 0 even if nothing was seen.
fn rate(before: Sum, is_other_part: bool) -> f64 {
    (before.counted(is_other_part) + 0.5) / (before.whole + 1.0)
}

/// A distinct leaf.
#[derive(Clone, Copy, Debug)]
struct Row {
    ids: [u32; 8],
    before: Sum,
    now: Sum,
}

impl Row {
    fn leaf(&self, rate: f64, is_other_part: bool) -> Leaf {
        let known = self.before.counted(is_other_part) + PRIOR * rate;
        let whole = self.now.whole;
        Leaf {
            came: self.now.counted(is_other_part),
            expected: whole * known / (self.before.whole + PRIOR),
            whole,
            known,
        }
    }
}

/// Distinct leaves in the order of their values.
struct Rows(Vec<Row>);

impl Rows {
    /// Sorts the leaves, and adds up those that are alike.
    fn of(leaves: &Leaves) -> Self {
        let mut ids = [0; 8];
        let mut rows: Vec<Row> = (0..leaves.len())
            .map(|leaf| {
                for (id, attribute) in ids.iter_mut().zip(&leaves.attributes) {
                    *id = attribute.ids[leaf];
                }
                Row {
                    ids,
                    before: Sum::of(leaves.before[leaf]),
                    now: Sum::of(leaves.now[leaf]),
                }
            })
            .collect();
        if !rows.is_sorted_by(|one, next| one.ids < next.ids) {
            // Among leaves that are alike, by their counts: sums of floats depend on the order.
            rows.sort_unstable_by(order);
            rows.dedup_by(|next, kept| {
                let are_alike = next.ids == kept.ids;
                if are_alike {
                    kept.before.add(next.before);
                    kept.now.add(next.now);
                }
                are_alike
            });
        }
        Self(rows)
    }

    /// If only events of the part have an attribute, each of its values is a share of the events with any value.
    fn sharing_wholes(mut self, leaves: &Leaves) -> Self {
        let of_part: Vec<usize> = (0..leaves.attributes.len())
            .filter(|place| leaves.attributes[*place].of_part)
            .collect();
        if of_part.is_empty() {
            return self;
        }
        let others = |row: &Row| {
            let mut ids = row.ids;
            of_part.iter().for_each(|place| ids[*place] = 0);
            ids
        };
        let mut wholes: BTreeMap<[u32; 8], [f64; 2]> = BTreeMap::new();
        for row in &self.0 {
            let [before, now] = wholes.entry(others(row)).or_default();
            *before += row.before.whole;
            *now += row.now.whole;
        }
        for row in &mut self.0 {
            if let Some([before, now]) = wholes.get(&others(row)) {
                row.before.whole = *before;
                row.now.whole = *now;
            }
        }
        // What is not of the part has none of its attributes.
        self.0
            .retain(|row| row.before.part > 0.0 || row.now.part > 0.0);
        self
    }

    fn totals(&self) -> [Sum; 2] {
        let mut totals = [Sum::default(); 2];
        for row in &self.0 {
            totals[0].add(row.before);
            totals[1].add(row.now);
        }
        totals
    }
}

fn order(one: &Row, other: &Row) -> Ordering {
    let numbers = |row: &Row| {
        [
            row.before.part,
            row.before.whole,
            row.now.part,
            row.now.whole,
        ]
    };
    let mut pairs = numbers(one).into_iter().zip(numbers(other));
    one.ids.cmp(&other.ids).then_with(|| {
        pairs
            .try_fold(Ordering::Equal, |_, (one, other)| {
                match one.total_cmp(&other) {
                    Ordering::Equal => Ok(Ordering::Equal),
                    unequal => Err(unequal),
                }
            })
            .unwrap_or_else(|unequal| unequal)
    })
}
