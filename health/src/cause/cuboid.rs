//! All combinations of values of some attributes, with their counts.

use super::element::Element;
use super::leaves::{Leaves, Tally};

/// The combinations of values of some attributes.
#[derive(Clone, Debug)]
pub(crate) struct Cuboid {
    /// The attributes, as bits.
    pub(crate) attributes: u8,
    /// For each leaf, the position of its combination.
    pub(crate) groups: Vec<u32>,
    /// For each combination, a leaf that has it.
    pub(crate) leaves: Vec<u32>,
}

impl Cuboid {
    /// The one combination of no values: everything.
    pub(crate) fn everything(leaves: &Leaves) -> Self {
        Self {
            attributes: 0,
            groups: vec![0; leaves.len()],
            leaves: if leaves.is_empty() {
                Vec::new()
            } else {
                vec![0]
            },
        }
    }

    /// The combinations of these attributes and one more.
    pub(crate) fn with(&self, attribute: usize, leaves: &Leaves) -> Self {
        let column = &leaves.attributes[attribute];
        let values = column.values.len() as u64;
        let keys = self.groups.iter().zip(&column.ids);
        let keys = keys.map(|(group, id)| u64::from(*group) * values + u64::from(*id));
        let room = self.leaves.len() as u64 * values;
        let (groups, firsts) = if room <= leaves.len() as u64 * 8 + 1024 {
            numbered_in_table(keys, room as usize)
        } else {
            numbered_by_sorting(keys)
        };
        Self {
            attributes: self.attributes | 1 << attribute,
            groups,
            leaves: firsts,
        }
    }

    /// The combination at a position.
    pub(crate) fn element(&self, group: usize, leaves: &Leaves) -> Element {
        let mut values = [0; 8];
        for (place, attribute) in leaves.attributes.iter().enumerate() {
            if self.attributes & 1 << place != 0 {
                values[place] = attribute.ids[self.leaves[group] as usize];
            }
        }
        Element {
            attributes: self.attributes,
            values,
        }
    }

    /// The counts of each combination.
    pub(crate) fn sums(&self, tallies: &[Tally]) -> Vec<Tally> {
        let mut sums = vec![Tally::default(); self.leaves.len()];
        for (group, tally) in self.groups.iter().zip(tallies) {
            let sum = &mut sums[*group as usize];
            // No sum is above that of all leaves, which fits.
            sum.part = sum.part.saturating_add(tally.part);
            sum.whole = sum.whole.saturating_add(tally.whole);
        }
        sums
    }
}

/// Numbers distinct keys by a table with a place for each possible key.
fn numbered_in_table(keys: impl Iterator<Item = u64>, room: usize) -> (Vec<u32>, Vec<u32>) {
    let mut numbers = vec![u32::MAX; room];
    let mut firsts = Vec::new();
    let groups = (0..).zip(keys).map(|(leaf, key)| {
        let number = &mut numbers[key as usize];
        if *number == u32::MAX {
            *number = firsts.len() as u32;
            firsts.push(leaf);
        }
        *number
    });
    (groups.collect(), firsts)
}

/// Numbers distinct keys where a table would be much larger than the keys.
fn numbered_by_sorting(keys: impl Iterator<Item = u64>) -> (Vec<u32>, Vec<u32>) {
    let mut sorted: Vec<(u64, u32)> = keys.zip(0..).collect();
    sorted.sort_unstable();
    let mut groups = vec![0; sorted.len()];
    let mut firsts = Vec::new();
    let mut last = None;
    for (key, leaf) in sorted {
        if last.replace(key) != Some(key) {
            firsts.push(leaf);
        }
        groups[leaf as usize] = firsts.len() as u32 - 1;
    }
    (groups, firsts)
}

/// Calls a function for each cuboid of at least one attribute. A cuboid is made of the one with its last attribute less,
/// so that at most as many are held as there are attributes.
pub(crate) fn each_cuboid(leaves: &Leaves, found: &mut dyn FnMut(&Cuboid)) {
    fn deeper(of: &Cuboid, from: usize, leaves: &Leaves, found: &mut dyn FnMut(&Cuboid)) {
        for attribute in from..leaves.attributes.len() {
            let cuboid = of.with(attribute, leaves);
            found(&cuboid);
            deeper(&cuboid, attribute + 1, leaves, found);
        }
    }
    deeper(&Cuboid::everything(leaves), 0, leaves, found);
}
