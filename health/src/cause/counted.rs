//! The leaves of a rate as columns of numbers: observed and expected counts.

use std::collections::BTreeMap;

use super::leaves::{Element, Leaves, Tally};

/// This many events at the overall earlier rate are added to each leaf's history. So a leaf with little history is expected to
/// have the overall rate, and a leaf with far more events is expected to have its own earlier rate.
const PRIOR: f64 = 70.0;

/// The counts of one leaf. They are floats, because they are used only for ranking and weighing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    /// How many counted events were observed (see [`Counted::is_other_part`]).
    pub(crate) observed: f64,
    /// How many counted events were expected.
    pub(crate) expected: f64,
    /// The events that the counted events are a share of.
    pub(crate) whole: f64,
    /// The number of counted events that the expectation was learned from.
    pub(crate) known: f64,
}

/// The leaves that have events now, sorted by their values. No two leaves have the same values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// How many values each attribute has.
    pub(crate) sizes: Vec<usize>,
    /// For each attribute and leaf, the position of its value.
    pub(crate) ids: Vec<Vec<u32>>,
    pub(crate) leaves: Vec<Leaf>,
    /// Whether the events outside of the part are counted instead of the part. True if the part was more than half of all events
    /// before (or is more than half of all events now, if there were none before): the smaller number varies less. False if an
    /// attribute exists only for events of the part.
    pub(crate) is_other_part: bool,
}

impl Counted {
    /// Computes the observed and the expected count of each leaf.
    pub(crate) fn of(leaves: &Leaves) -> Self {
        let distinct = Distinct::of(leaves);
        let sides = [&distinct.before, &distinct.now];
        let [before, now] = sides.map(|tallies| sum(tallies.iter().copied()));
        let has_no_other_part = leaves.attributes.iter().any(|one| one.of_part);
        let known = if before.whole > 0.0 { before } else { now };
        let is_other_part = known.part > 0.5 * known.whole && !has_no_other_part;
        let rate = rate(before, is_other_part);
        let all = distinct.before.iter().zip(&distinct.now);
        let leaf = |(before, now): (&Tally, &Tally)| Leaf::of(*before, *now, rate, is_other_part);
        let counted = Self {
            sizes: leaves.attributes.iter().map(|one| one.values.len()).collect(),
            leaves: all.map(leaf).collect(),
            ids: distinct.ids,
            is_other_part,
        };
        let has_events: Vec<bool> = counted.leaves.iter().map(|leaf| leaf.whole > 0.0).collect();
        counted.chosen(&has_events)
    }

    /// Returns whether a leaf belongs to a combination.
    pub(crate) fn is_in(&self, leaf: usize, element: Element) -> bool {
        element.is_of(|place| self.ids[place][leaf])
    }

    /// Returns the leaves that don't belong to a combination.
    pub(crate) fn without(&self, element: Element) -> Self {
        let stay: Vec<bool> =
            (0..self.leaves.len()).map(|leaf| !self.is_in(leaf, element)).collect();
        self.chosen(&stay)
    }

    /// Returns only the leaves for which `stay` is true.
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
    all.filter(|(_, stays)| **stays).map(|(one, _)| *one).collect()
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
    /// Returns the number of counted events: the part, or all other events.
    fn counted(self, is_other_part: bool) -> f64 {
        if is_other_part { self.whole - self.part } else { self.part }
    }
}

/// Returns the overall rate, which is above 0 even if no event was seen.
fn rate(before: Sum, is_other_part: bool) -> f64 {
    (before.counted(is_other_part) + 0.5) / (before.whole + 1.0)
}

impl Leaf {
    fn of(before: Tally, now: Tally, rate: f64, is_other_part: bool) -> Self {
        let counted = |tally: Tally| tally.counted(is_other_part) as f64;
        let known = counted(before) + PRIOR * rate;
        let whole = now.whole as f64;
        Self {
            observed: counted(now),
            expected: whole * known / (before.whole as f64 + PRIOR),
            whole,
            known,
        }
    }
}

/// Distinct leaves, sorted by their values. The result does not depend on the order of the rows, or on how a leaf's
/// counts are split into rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distinct {
    /// For each attribute and leaf, the position of its value.
    pub(crate) ids: Vec<Vec<u32>>,
    pub(crate) before: Vec<Tally>,
    pub(crate) now: Vec<Tally>,
}

impl Distinct {
    pub(crate) fn of(leaves: &Leaves) -> Self {
        let mut distinct = Self {
            ids: vec![Vec::with_capacity(leaves.len()); leaves.attributes.len()],
            before: Vec::with_capacity(leaves.len()),
            now: Vec::with_capacity(leaves.len()),
        };
        for place in sorted_places(leaves) {
            distinct.push(leaves, place as usize);
        }
        distinct.share_wholes(leaves);
        distinct
    }

    /// Returns the number of leaves.
    pub(crate) fn len(&self) -> usize {
        self.now.len()
    }

    fn push(&mut self, leaves: &Leaves, place: usize) {
        let ids = || leaves.attributes.iter().map(|attribute| attribute.ids[place]);
        let (before, now) = (leaves.before[place].sound(), leaves.now[place].sound());
        let last = self.ids.iter().map(|ids| ids.last().copied());
        if self.len() > 0 && last.eq(ids().map(Some)) {
            let end = self.len() - 1;
            self.before[end].add(before);
            self.now[end].add(now);
            return;
        }
        for (column, id) in self.ids.iter_mut().zip(ids()) {
            column.push(id);
        }
        self.before.push(before);
        self.now.push(now);
    }

    /// Some attributes exist only for counted events. For each value of such an attribute, sets the whole to the number of events
    /// with any value of the attribute.
    fn share_wholes(&mut self, leaves: &Leaves) {
        let is_of_part = leaves.attributes.iter().map(|attribute| attribute.of_part);
        let others: Vec<usize> =
            is_of_part.enumerate().filter(|(_, is)| !is).map(|(place, _)| place).collect();
        if others.len() == leaves.attributes.len() {
            return;
        }
        let key = |ids: &[Vec<u32>], leaf: usize| -> Vec<u32> {
            others.iter().map(|place| ids[*place][leaf]).collect()
        };
        let mut wholes: BTreeMap<Vec<u32>, [u64; 2]> = BTreeMap::new();
        for leaf in 0..self.len() {
            let [before, now] = wholes.entry(key(&self.ids, leaf)).or_default();
            *before = before.saturating_add(self.before[leaf].whole);
            *now = now.saturating_add(self.now[leaf].whole);
        }
        for leaf in 0..self.len() {
            if let Some([before, now]) = wholes.get(&key(&self.ids, leaf)) {
                // Only events of the part have the attribute, so the attribute can't explain the counts of other events.
                let is_part = self.before[leaf].part > 0 || self.now[leaf].part > 0;
                self.before[leaf].whole = if is_part { *before } else { 0 };
                self.now[leaf].whole = if is_part { *now } else { 0 };
            }
        }
    }
}

/// Returns the positions of all leaves, sorted by their values. Sorts by one attribute after another, from the last to the first,
/// by counting sort.
fn sorted_places(leaves: &Leaves) -> Vec<u32> {
    let mut places: Vec<u32> = (0..).take(leaves.len()).collect();
    if is_sorted(leaves) {
        return places;
    }
    let mut sorted = vec![0; places.len()];
    for attribute in leaves.attributes.iter().rev() {
        let mut starts = vec![0u32; attribute.values.len() + 1];
        for id in &attribute.ids {
            starts[*id as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        for place in &places {
            let start = &mut starts[attribute.ids[*place as usize] as usize];
            sorted[*start as usize] = *place;
            *start += 1;
        }
        std::mem::swap(&mut places, &mut sorted);
    }
    places
}

fn is_sorted(leaves: &Leaves) -> bool {
    let ids = |leaf: usize| leaves.attributes.iter().map(move |attribute| attribute.ids[leaf]);
    (1..leaves.len()).all(|leaf| ids(leaf - 1).le(ids(leaf)))
}
