//! Chooses the combinations that are examined closely.

use super::counted::Counted;
use super::leaves::Element;
use crate::stats::mass::deviance;

/// For each number of attributes, how many combinations are examined closely.
const OF_EACH_LAYER: usize = 8;
/// The maximum number of candidates. Each candidate, and the combination of everything, has a bit in a 64-bit word.
pub(crate) const MOST: usize = 63;

/// Whether more or fewer events were observed than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Rise,
    Fall,
}

/// A combination, the sums over its leaves, and how much these sums deviate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) element: Element,
    pub(crate) sums: Sums,
    deviance: f64,
}

/// The candidates, and the number of combinations that they were chosen from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scanned: u64,
}

impl Pool {
    /// Chooses, for each number of attributes, the combinations whose sums deviate most while the sums of all other
    /// leaves don't. Many combinations of many attributes may be nearly the same, so the pool has only a few for each
    /// number of attributes.
    pub(crate) fn of(counted: &Counted, direction: Direction) -> Self {
        let all = Sums::of(counted);
        let mut layers: Vec<Vec<Candidate>> = vec![Vec::new(); counted.sizes.len() + 1];
        let mut scanned = 0;
        each_element(counted, &mut |sums, element| {
            scanned += 1;
            if !direction.is_of(sums.observed, sums.expected) {
                return;
            }
            let rest = (all.observed - sums.observed, all.expected - sums.expected);
            let deviance = deviance(sums.observed, sums.expected) - deviance(rest.0, rest.1);
            let element = element();
            let layer = &mut layers[element.layer() as usize];
            let candidate = Candidate { element, sums: *sums, deviance };
            let place = layer.partition_point(|other| other.is_before(&candidate));
            if place < OF_EACH_LAYER {
                layer.insert(place, candidate);
                layer.truncate(OF_EACH_LAYER);
            }
        });
        let mut candidates: Vec<Candidate> = layers.into_iter().flatten().collect();
        candidates.truncate(MOST);
        Self { candidates, scanned }
    }
}

impl Candidate {
    /// Returns the combination that contains all leaves.
    pub(crate) fn everything(sums: Sums) -> Self {
        Self { element: Element::of_leaf(0, |_| 0), sums, deviance: 0.0 }
    }

    fn is_before(&self, other: &Self) -> bool {
        let order = other.deviance.total_cmp(&self.deviance);
        order.then(self.element.cmp(&other.element)).is_lt()
    }
}

impl Direction {
    /// Returns whether more or fewer events were observed than expected.
    pub(crate) fn of(observed: f64, expected: f64) -> Self {
        if observed >= expected { Self::Rise } else { Self::Fall }
    }

    /// Returns whether these events changed in this direction.
    pub(crate) fn is_of(self, observed: f64, expected: f64) -> bool {
        match self {
            Self::Rise => observed > expected,
            Self::Fall => observed < expected,
        }
    }
}

/// Sums over the leaves of a combination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// How many counted events were observed (see [`Counted::is_other_part`]).
    pub(crate) observed: f64,
    /// How many counted events were expected.
    pub(crate) expected: f64,
    /// The events that the counted events are a share of.
    pub(crate) whole: f64,
    /// The number of leaves.
    pub(crate) leaves: u32,
}

impl Sums {
    /// Returns the sums of all leaves.
    pub(crate) fn of(counted: &Counted) -> Self {
        let mut all = Self::default();
        for place in 0..counted.leaves.len() {
            all.add(Self::of_leaf(counted, place));
        }
        all
    }

    fn of_leaf(counted: &Counted, place: usize) -> Self {
        let leaf = &counted.leaves[place];
        Self { observed: leaf.observed, expected: leaf.expected, whole: leaf.whole, leaves: 1 }
    }

    fn add(&mut self, other: Self) {
        self.observed += other.observed;
        self.expected += other.expected;
        self.whole += other.whole;
        self.leaves += other.leaves;
    }
}

/// Calls a function for each combination that any leaf has.
///
/// A cuboid (all combinations of some attributes) is computed from a cuboid that has one attribute more. Attributes with
/// many values are dropped first, because this keeps later cuboids small. At most as many cuboids are held at a time as
/// there are attributes.
pub(crate) fn each_element(counted: &Counted, found: &mut dyn FnMut(&Sums, &dyn Fn() -> Element)) {
    let mut order: Vec<usize> = (0..counted.sizes.len()).collect();
    order.sort_by_key(|attribute| (counted.sizes[*attribute], *attribute));
    let finest = Cuboid {
        attributes: order.iter().fold(0, |all, attribute| all | 1 << attribute),
        leaves: (0..).take(counted.leaves.len()).collect(),
        sums: (0..counted.leaves.len()).map(|place| Sums::of_leaf(counted, place)).collect(),
    };
    if !order.is_empty() {
        go_coarser(&finest, &order, counted, found);
    }
}

/// All combinations of some attributes.
struct Cuboid {
    /// The attributes, as bits.
    attributes: u8,
    /// For each combination, a leaf that has it.
    leaves: Vec<u32>,
    sums: Vec<Sums>,
}

/// Visits a cuboid, and all cuboids that lack some of the `droppable` attributes.
fn go_coarser(
    cuboid: &Cuboid,
    droppable: &[usize],
    counted: &Counted,
    found: &mut dyn FnMut(&Sums, &dyn Fn() -> Element),
) {
    for (leaf, sums) in cuboid.leaves.iter().zip(&cuboid.sums) {
        found(sums, &|| {
            Element::of_leaf(cuboid.attributes, |place| counted.ids[place][*leaf as usize])
        });
    }
    if cuboid.attributes.count_ones() <= 1 {
        return;
    }
    for (place, attribute) in droppable.iter().enumerate().rev() {
        let coarser = cuboid.without(*attribute, counted);
        go_coarser(&coarser, &droppable[..place], counted, found);
    }
}

impl Cuboid {
    fn without(&self, attribute: usize, counted: &Counted) -> Self {
        let attributes = self.attributes & !(1 << attribute);
        let named = || (0..counted.ids.len()).filter(|place| attributes & 1 << place != 0);
        let columns: Vec<&[u32]> = named().map(|place| counted.ids[place].as_slice()).collect();
        let sizes: Vec<usize> = named().map(|place| counted.sizes[place]).collect();
        let mut coarser = Self { attributes, leaves: Vec::new(), sums: Vec::new() };
        let mut numbers = Numbers::new(&columns, &sizes, self.leaves.len());
        for (leaf, sums) in self.leaves.iter().zip(&self.sums) {
            let number = numbers.of(*leaf, &columns, &coarser.leaves);
            if let Some(sum) = coarser.sums.get_mut(number as usize) {
                sum.add(*sums);
            } else {
                coarser.leaves.push(*leaf);
                coarser.sums.push(*sums);
            }
        }
        coarser
    }
}

/// Numbers combinations in the order of their first leaves.
///
/// If the number of possible combinations is small, each one has a fixed slot in `slots`. Otherwise, `slots` is a hash
/// table with open addressing, whose keys are the first leaves of the combinations.
pub(crate) struct Numbers {
    /// The number of a combination plus 1, or 0 if the slot is free.
    slots: Vec<u32>,
    /// The factor of each column in the position of a slot; `None` for a hash table.
    strides: Option<Vec<usize>>,
}

impl Numbers {
    /// Makes an empty numbering for at most `leaves` leaves.
    pub(crate) fn new(columns: &[&[u32]], sizes: &[usize], leaves: usize) -> Self {
        assert_eq!(columns.len(), sizes.len());
        let most = leaves.saturating_mul(4).saturating_add(1024);
        let mut room = 1usize;
        let mut strides = Vec::with_capacity(sizes.len());
        for size in sizes {
            strides.push(room);
            room = room.saturating_mul(*size);
        }
        if room <= most {
            return Self { slots: vec![0; room], strides: Some(strides) };
        }
        // Twice as many slots as leaves, so at most half of the slots are taken.
        Self { slots: vec![0; (leaves.max(1) * 2).next_power_of_two()], strides: None }
    }

    /// Returns the number of a leaf's combination. `firsts` has the first leaf of each numbered combination, in order. A
    /// new combination gets the length of `firsts` as its number.
    pub(crate) fn of(&mut self, leaf: u32, columns: &[&[u32]], firsts: &[u32]) -> u32 {
        let leaf = leaf as usize;
        let next = firsts.len() as u32;
        if let Some(strides) = &self.strides {
            let parts = columns.iter().zip(strides);
            let place: usize = parts.map(|(column, stride)| column[leaf] as usize * stride).sum();
            return taken(&mut self.slots[place], next);
        }
        let last = self.slots.len() - 1;
        let hash = columns.iter().fold(0, |hash, column| mixed(hash, column[leaf]));
        let mut place = (hash ^ hash >> 32) as usize & last;
        while let Some(number) = self.slots[place].checked_sub(1) {
            let first = firsts[number as usize] as usize;
            if columns.iter().all(|column| column[leaf] == column[first]) {
                return number;
            }
            place = (place + 1) & last;
        }
        taken(&mut self.slots[place], next)
    }
}

/// Returns the number in a slot. If the slot is free, first writes the next number into it.
fn taken(slot: &mut u32, next: u32) -> u32 {
    if *slot == 0 {
        *slot = next + 1;
    }
    *slot - 1
}

/// Does one step of a hash function like FxHash. The factor, 2^64 divided by the golden ratio, spreads numbers that are close.
fn mixed(hash: u64, id: u32) -> u64 {
    (hash.rotate_left(26) ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the numbering has a fixed slot for each combination, and the numbers of all leaves.
    fn numbered(columns: &[&[u32]], sizes: &[usize]) -> (bool, Vec<u32>) {
        let leaves = columns[0].len();
        let mut numbers = Numbers::new(columns, sizes, leaves);
        let mut firsts = Vec::new();
        let all = (0..leaves as u32).map(|leaf| {
            let number = numbers.of(leaf, columns, &firsts);
            if number as usize == firsts.len() {
                firsts.push(leaf);
            }
            number
        });
        let all = all.collect();
        (numbers.strides.is_some(), all)
    }

    #[test]
    fn a_table_and_a_hash_table_number_alike() {
        let one: Vec<u32> = (0..3000).map(|leaf| leaf * 7 % 50).collect();
        let other: Vec<u32> = (0..3000).map(|leaf| leaf * leaf % 61).collect();
        let (in_table, small) = numbered(&[&one, &other], &[50, 61]);
        let (still_in_table, large) = numbered(&[&one, &other], &[50, 1_000_000]);
        assert!(in_table && !still_in_table);
        assert_eq!(small, large);
        let mut seen = std::collections::BTreeMap::new();
        for (leaf, number) in small.iter().enumerate() {
            let next = seen.len() as u32;
            assert_eq!(*number, *seen.entry((one[leaf], other[leaf])).or_insert(next));
        }
    }
}
