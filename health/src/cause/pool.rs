//! The combinations that are worth a closer look.

use super::counted::Counted;
use super::element::Element;
use super::elements::{Sums, each_element};
use crate::stats::deviance::deviance;

/// How many combinations of each number of attributes are looked at closely.
const OF_EACH_LAYER: usize = 8;
/// The maximum number of all: together with the combination of everything, as many as a word has bits.
pub(crate) const MOST: usize = 63;

/// Whether more or fewer events came than were expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Rise,
    Fall,
}

/// A combination, what its leaves sum up to, and how much their sum alone deviates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) element: Element,
    pub(crate) sums: Sums,
    deviance: f64,
}

/// Candidates, and how many combinations they were chosen from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scanned: u64,
}

impl Pool {
    /// For each number of attributes, the combinations whose sums deviate most while those of all other leaves don't.
    /// Many fine combinations may be nearly the same, so no number of attributes may fill the pool alone.
    pub(crate) fn of(counted: &Counted, direction: Direction) -> Self {
        let all = Sums::of(counted);
        let mut layers: Vec<Vec<Candidate>> = vec![Vec::new(); counted.sizes.len() + 1];
        let mut scanned = 0;
        each_element(counted, &mut |sums, element| {
            scanned += 1;
            if !direction.is_of(sums.came, sums.expected) {
                return;
            }
            let rest = (all.came - sums.came, all.expected - sums.expected);
            let deviance = deviance(sums.came, sums.expected) - deviance(rest.0, rest.1);
            let element = element();
            let layer = &mut layers[element.layer() as usize];
            let candidate = Candidate {
                element,
                sums: *sums,
                deviance,
            };
            let place = layer.partition_point(|other| other.is_before(&candidate));
            if place < OF_EACH_LAYER {
                layer.insert(place, candidate);
                layer.truncate(OF_EACH_LAYER);
            }
        });
        let mut candidates: Vec<Candidate> = layers.into_iter().flatten().collect();
        candidates.truncate(MOST);
        Self {
            candidates,
            scanned,
        }
    }
}

impl Candidate {
    /// All leaves.
    pub(crate) fn everything(sums: Sums) -> Self {
        Self {
            element: Element::of_leaf(0, |_| 0),
            sums,
            deviance: 0.0,
        }
    }

    fn is_before(&self, other: &Self) -> bool {
        let order = other.deviance.total_cmp(&self.deviance);
        order.then(self.element.cmp(&other.element)).is_lt()
    }
}

impl Direction {
    /// Whether more or fewer events came than were expected.
    pub(crate) fn of(came: f64, expected: f64) -> Self {
        if came >= expected {
            Self::Rise
        } else {
            Self::Fall
        }
    }

    /// Whether these events changed in this direction.
    pub(crate) fn is_of(self, came: f64, expected: f64) -> bool {
        match self {
            Self::Rise => came > expected,
            Self::Fall => came < expected,
        }
    }
}
