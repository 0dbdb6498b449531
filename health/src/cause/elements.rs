//! Goes through all combinations of values, with their sums.

use super::counted::Counted;
use super::element::Element;
use super::numbers::Numbers;

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
/// A cuboid (all combinations of some attributes) is computed from one that has one attribute more. Attributes with
/// many values are dropped first, because the cuboids after them are small then. At most as many cuboids are held at a
/// time as there are attributes.
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
        let named = || (0..counted.ids.len()).filter(|place| attributes & 1 << place != 0);
        let columns: Vec<&[u32]> = named().map(|place| counted.ids[place].as_slice()).collect();
        let sizes: Vec<usize> = named().map(|place| counted.sizes[place]).collect();
        let mut coarser = Self {
            attributes,
            leaves: Vec::new(),
            sums: Vec::new(),
        };
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
