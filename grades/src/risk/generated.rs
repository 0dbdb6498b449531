//! Files like the synthetic set S of RiskLoc (Kalander 2022): normal leaves with noise, and one to three anomalies.

use std::collections::BTreeSet;

use super::random::Random;

/// The attributes of a file.
pub(crate) const ATTRIBUTES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// An element: the number of a value for some attributes, and `None` for the others.
pub(crate) type Element = [Option<u32>; 5];

/// A file: leaves with their expected and their actual counts, and the true causes.
pub(crate) struct File {
    /// How many values each attribute has.
    pub(crate) sizes: [u32; 5],
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) causes: BTreeSet<Element>,
}

/// All events of one combination of values.
pub(crate) struct Leaf {
    pub(crate) values: [u32; 5],
    pub(crate) expected: u64,
    pub(crate) actual: u64,
}

/// What the leaves of an anomaly have in common.
struct Anomaly {
    attributes: Vec<usize>,
    elements: BTreeSet<Element>,
    severity: f64,
    deviation: f64,
}

/// The properties of generated files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The fewest and the most values of an attribute.
    pub(crate) values: [usize; 2],
    /// How many events a value of 1 represents. If there are few, the counts of small leaves are rounded coarsely.
    pub(crate) unit: f64,
}

/// Attributes of 5 to 10 values, counted finely.
pub(crate) const FINE: Manner = Manner { values: [5, 10], unit: 1000.0 };

/// Generates file `number` of a seed.
pub(crate) fn file(seed: u64, number: u64, manner: Manner) -> File {
    let mut random = Random::new(seed, number);
    let [fewest, most] = manner.values;
    let sizes = std::array::from_fn(|_| random.between(fewest, most) as u32);
    let noise = random.uniform(0.0, 0.25);
    let mut leaves = normal(sizes, noise, &mut random);
    let mut anomalies: Vec<Anomaly> = Vec::new();
    for _ in 0..random.between(1, 3) {
        let anomaly = anomaly(sizes, noise, &leaves, &anomalies, &mut random);
        anomalies.push(anomaly);
    }
    let rises = sum(&leaves, |leaf| leaf.actual) > sum(&leaves, |leaf| leaf.expected);
    for anomaly in &anomalies {
        inject(anomaly, rises, &mut leaves, &mut random);
    }
    File {
        sizes,
        leaves: leaves.iter().map(|leaf| leaf.counted(manner.unit)).collect(),
        causes: anomalies.into_iter().flat_map(|it| it.elements).collect(),
    }
}

/// A leaf before it is counted in whole events.
struct Draft {
    values: [u32; 5],
    expected: f64,
    actual: f64,
}

impl Draft {
    fn is_in(&self, element: &Element) -> bool {
        let mut pairs = element.iter().zip(self.values);
        pairs.all(|(wanted, value)| wanted.is_none_or(|wanted| wanted == value))
    }

    fn counted(&self, unit: f64) -> Leaf {
        Leaf {
            values: self.values,
            expected: libm::round(self.expected * unit) as u64,
            actual: libm::round(self.actual * unit) as u64,
        }
    }
}

fn sum(leaves: &[Draft], of: impl Fn(&Draft) -> f64) -> f64 {
    leaves.iter().map(of).sum()
}

/// Every combination of values: Weibull sizes, some of them zero, and noise on either the expected or the actual value.
fn normal(sizes: [u32; 5], noise: f64, random: &mut Random) -> Vec<Draft> {
    let zeros = random.uniform(0.0, 0.25);
    let shape = random.uniform(0.5, 1.0);
    let count: u32 = sizes.iter().product();
    let leaf = |mut number: u32| {
        let values = sizes.map(|size| {
            let value = number % size;
            number /= size;
            value
        });
        let size = 100.0 * random.weibull(shape);
        let exact = if random.unit() < zeros { 0.0 } else { size };
        let noisy = (exact * (1.0 + random.normal(0.0, noise))).max(0.0);
        let (expected, actual) = if random.unit() < 0.5 { (exact, noisy) } else { (noisy, exact) };
        Draft { values, expected, actual }
    };
    (0..count).map(leaf).collect()
}

/// Draws one to three elements with the same attributes. For each attribute, their values differ from the values of
/// earlier anomalies.
fn anomaly(
    sizes: [u32; 5],
    noise: f64,
    leaves: &[Draft],
    earlier: &[Anomaly],
    random: &mut Random,
) -> Anomaly {
    let count = random.between(1, 3);
    let severity = random.uniform(0.2, 1.0) + noise;
    let deviation = random.uniform(0.0, 0.1);
    loop {
        // The attributes are drawn again, too, because earlier anomalies may have used all values of an attribute.
        let layer = random.between(1, ATTRIBUTES.len());
        let attributes = random.sample(ATTRIBUTES.len(), layer);
        let is_used = earlier.iter().any(|other| other.attributes == attributes);
        if is_used && layer < ATTRIBUTES.len() {
            continue;
        }
        let Some(elements) = elements(&attributes, count, sizes, earlier, random) else {
            continue;
        };
        if elements.len() == count && elements.iter().all(|element| is_visible(element, leaves)) {
            return Anomaly { attributes, elements, severity, deviation };
        }
    }
}

/// Draws elements. There are fewer than `count` if two of them are equal. Returns `None` if an attribute has no unused value.
fn elements(
    attributes: &[usize],
    count: usize,
    sizes: [u32; 5],
    earlier: &[Anomaly],
    random: &mut Random,
) -> Option<BTreeSet<Element>> {
    let mut elements = vec![Element::default(); count];
    for &attribute in attributes {
        let used: BTreeSet<u32> = earlier
            .iter()
            .flat_map(|other| &other.elements)
            .filter_map(|element| element[attribute])
            .collect();
        let free: Vec<u32> = (0..sizes[attribute]).filter(|value| !used.contains(value)).collect();
        for element in &mut elements {
            let last = free.len().checked_sub(1)?;
            element[attribute] = Some(free[random.between(0, last)]);
        }
    }
    Some(elements.into_iter().collect())
}

/// Whether a method can find an element. If the element is a single leaf, the leaf must have events.
fn is_visible(element: &Element, leaves: &[Draft]) -> bool {
    element.iter().any(Option::is_none)
        || leaves.iter().any(|leaf| leaf.is_in(element) && leaf.actual > 0.0)
}

/// Injects an anomaly into its leaves. If the total rises, the expected count becomes the actual count, reduced by the
/// severity; otherwise, the actual count becomes the expected count, reduced by the severity. This replaces the noise.
fn inject(anomaly: &Anomaly, rises: bool, leaves: &mut [Draft], random: &mut Random) {
    for leaf in leaves {
        if !anomaly.elements.iter().any(|element| leaf.is_in(element)) {
            continue;
        }
        let severity = random.normal(anomaly.severity, anomaly.deviation);
        if rises {
            leaf.expected = (leaf.actual * (1.0 - severity)).max(0.0);
        } else {
            leaf.actual = (leaf.expected * (1.0 - severity)).max(0.0);
        }
    }
}
