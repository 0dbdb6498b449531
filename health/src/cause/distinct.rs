//! Leaves sorted by their values, each combination once.

use std::collections::BTreeMap;

use super::leaves::{Leaves, Tally};

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

    /// How many leaves.
    pub(crate) fn len(&self) -> usize {
        self.now.len()
    }

    fn push(&mut self, leaves: &Leaves, place: usize) {
        let ids = || {
            leaves
                .attributes
                .iter()
                .map(|attribute| attribute.ids[place])
        };
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

    /// If only events of the part have an attribute, the whole of each of its values is the events with any value.
    fn share_wholes(&mut self, leaves: &Leaves) {
        let is_of_part = leaves.attributes.iter().map(|attribute| attribute.of_part);
        let others: Vec<usize> = is_of_part
            .enumerate()
            .filter(|(_, is)| !is)
            .map(|(place, _)| place)
            .collect();
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
                // Events outside of the part have no value of such an attribute, so the attribute can't explain their
                // counts.
                let is_part = self.before[leaf].part > 0 || self.now[leaf].part > 0;
                self.before[leaf].whole = if is_part { *before } else { 0 };
                self.now[leaf].whole = if is_part { *now } else { 0 };
            }
        }
    }
}

/// The positions of all leaves in the order of their values: a counting sort by each attribute, the last one first.
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
    let ids = |leaf: usize| {
        leaves
            .attributes
            .iter()
            .map(move |attribute| attribute.ids[leaf])
    };
    (1..leaves.len()).all(|leaf| ids(leaf - 1).le(ids(leaf)))
}
