//! Goes through all combinations of values, with their sums.

use super::counted::Counted;
use super::element::Element;

/// What the leaves of a combination sum up to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// How many events of the part came.
    pub(crate) came: f64,
    /// How many were expected.
    pub(crate) expected: f64,
    /// How many events they are a share of.
    pub(crate) whole: f64,
    /// How many leaves.
    pub(crate) leaves: u32,
}

impl Sums {
    /// The sums of all leaves.
    pub(crate) fn of(counted: &Counted) -> Self {
        let mut all = Self::default();
        for place in 0..counted.leaves.len() {
            all.add(Self::of_leaf(counted, place));
        }
        all
    }

    fn of_leaf(counted: &Counted, place: usize) -> Self {
        let leaf = &counted.leaves[place];
        Self {
            came: leaf.came,
            expected: leaf.expected,
            whole: leaf.whole,
            leaves: 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.came += other.came;
        self.expected += other.expected;
        self.whole += other.whole;
        self.leaves += other.leaves;
    }
}

/// Calls a function for each combination that any leaf has.
///
/// A cuboid (all combinations of some attributes) is made of one that has one attribute more. Attributes with many values are
/// left out first, because what comes after them is small then. At most as many cuboids are held as there are attributes.
pub(crate) fn each_element(counted: &Counted, found: &mut dyn FnMut(&Sums, &dyn Fn() -> Element)) {
    let mut order: Vec<usize> = (0..counted.sizes.len()).collect();
    order.sort_by_key(|attribute| (counted.sizes[*attribute], *attribute));
    let finest = Cuboid {
        attributes: order.iter().fold(0, |all, attribute| all | 1 << attribute),
        leaves: (0..).take(counted.leaves.len()).collect(),
        sums: (0..counted.leaves.len())
            .map(|place| Sums::of_leaf(counted, place))
            .collect(),
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

/// A cuboid, and all those that lack some of `droppable`.
fn go_coarser(
    cuboid: &Cuboid,
    droppable: &[usize],
    counted: &Counted,
    found: &mut dyn FnMut(&Sums, &dyn Fn() -> Element),
) {
    for (leaf, sums) in cuboid.leaves.iter().zip(&cuboid.sums) {
        found(sums, &|| {
            Element::of_leaf(cuboid.attributes, |place| {
                counted.ids[place][*leaf as usize]
            })
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
        let columns: Vec<&[u32]> = (0..counted.ids.len())
            .filter(|place| attributes & 1 << place != 0)
            .map(|place| counted.ids[place].as_slice())
            .collect();
        let mut coarser = Self {
            attributes,
            leaves: Vec::new(),
            sums: Vec::new(),
        };
        let mut numbers = Numbers::new(self.leaves.len());
        for (leaf, sums) in self.leaves.iter().zip(&self.sums) {
            let leaf = *leaf as usize;
            let hash = columns
                .iter()
                .fold(0, |hash, column| mixed(hash, column[leaf]));
            let is_same = |number: u32| {
                let other = coarser.leaves[number as usize] as usize;
                columns.iter().all(|column| column[leaf] == column[other])
            };
            let number = numbers.of(hash, is_same, coarser.leaves.len() as u32);
            if let Some(sum) = coarser.sums.get_mut(number as usize) {
                sum.add(*sums);
            } else {
                coarser.leaves.push(leaf as u32);
                coarser.sums.push(*sums);
            }
        }
        coarser
    }
}

/// Numbers of distinct keys, which are known to the caller: a hash table with open addressing.
struct Numbers {
    /// Number plus 1, or 0 where a slot is free. A power of 2, at least twice the number of keys.
    slots: Vec<u32>,
    shift: u32,
}

impl Numbers {
    fn new(most: usize) -> Self {
        let room = (most.max(1) * 2).next_power_of_two();
        Self {
            slots: vec![0; room],
            shift: 64 - room.trailing_zeros(),
        }
    }

    /// The number of a key; `next` if it is new.
    fn of(&mut self, hash: u64, is_same: impl Fn(u32) -> bool, next: u32) -> u32 {
        let last = self.slots.len() - 1;
        let mut slot = hash.wrapping_mul(GOLDEN).unbounded_shr(self.shift) as usize & last;
        loop {
            match self.slots[slot].checked_sub(1) {
                None => {
                    self.slots[slot] = next + 1;
                    return next;
                }
                Some(number) if is_same(number) => return number,
                Some(_) => slot = (slot + 1) & last,
            }
        }
    }
}

/// 2^64 divided by the golden ratio: a factor that spreads numbers that are close.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(hash: u64, id: u32) -> u64 {
    (hash.rotate_left(23) ^ u64::from(id)).wrapping_mul(GOLDEN)
}
