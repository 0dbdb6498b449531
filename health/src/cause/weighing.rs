//! Weighs candidates leaf by leaf: do the counts fit an incident in this combination better than no incident?
//!
//! An incident adds failures: it makes a share of the attempts fail that would have succeeded. This share differs from
//! leaf to leaf: it is exponentially distributed around the share of the whole combination. Without an incident, the
//! count of a leaf is near its expectation, which drifts naturally from window to window, and is known only as well as
//! the leaf's history is long. Both cases give negative binomial counts. So a leaf that is far from both cases says
//! little about which of them holds, however large it is, and a single leaf with an enormous rise does not outweigh its
//! neighbours.

use super::counted::{Counted, Leaf};
use super::element::Element;
use super::elements::Sums;
use super::likelihood::ln_likelihood;
use super::pool::{Candidate, Direction};

/// The natural variance of the rate of a leaf from one time to another, relative to the square of the rate: a drift of
/// a fifth.
const DRIFT: f64 = 0.04;
/// The variance of an incident's effect between leaves, relative to the square of the effect: that of an exponential
/// distribution.
const UNEVENNESS: f64 = 1.0;
/// A combination with one attribute more must be twice as likely to win: ln 2.
const PER_ATTRIBUTE: f64 = std::f64::consts::LN_2;
/// About how many leaves of a combination are weighed one by one. If there are more, neighbours are weighed together.
const FINEST: u32 = 2048;

/// How much better each candidate explains the counts of its leaves than no incident does, if all other leaves have `level`
/// times their expectation. The last one is everything.
pub(crate) fn weigh(
    counted: &Counted,
    candidates: &[Candidate],
    direction: Direction,
    level: f64,
) -> Vec<f64> {
    let everything = Candidate::everything(Sums::of(counted));
    let mut scales: Vec<Scale> = candidates
        .iter()
        .chain([&everything])
        .map(|candidate| Scale::of(candidate, direction, level))
        .collect();
    let membership = Membership::of(counted, candidates.iter().map(|one| one.element));
    for (place, leaf) in counted.leaves.iter().enumerate() {
        let mut bits = membership.of_leaf(counted, place);
        while bits != 0 {
            scales[bits.trailing_zeros() as usize].add(leaf);
            bits &= bits - 1;
        }
    }
    scales.into_iter().map(Scale::score).collect()
}

/// For each value, the candidates that have it, as bits. The last bit is the candidate of everything.
struct Membership {
    /// All candidates, and everything.
    all: u64,
    /// For each attribute and value.
    values: Vec<Vec<u64>>,
}

impl Membership {
    fn of(counted: &Counted, elements: impl Iterator<Item = Element> + Clone) -> Self {
        let everything: u64 = 1 << elements.clone().count().min(63);
        let table = |(place, size): (usize, &usize)| {
            let unnamed = (0..63).zip(elements.clone());
            let unnamed = unnamed.filter(|(_, element)| !element.names(place));
            let bits = unnamed.fold(everything, |bits, (bit, _)| bits | 1 << bit);
            let mut values = vec![bits; *size];
            for (bit, element) in (0..63)
                .zip(elements.clone())
                .filter(|(_, element)| element.names(place))
            {
                values[element.values[place] as usize] |= 1 << bit;
            }
            values
        };
        Self {
            all: everything | (everything - 1),
            values: counted.sizes.iter().enumerate().map(table).collect(),
        }
    }

    fn of_leaf(&self, counted: &Counted, leaf: usize) -> u64 {
        let columns = self.values.iter().zip(&counted.ids);
        columns.fold(self.all, |bits, (values, ids)| {
            bits & values[ids[leaf] as usize]
        })
    }
}

/// The evidence for one candidate so far.
struct Scale {
    direction: Direction,
    level: f64,
    /// The share of attempts, or of events of the part, that the incident changes.
    effect: f64,
    /// Leaves are taken together until this many events are expected of them.
    least: f64,
    together: Cell,
    score: f64,
}

/// One leaf, or neighbours that are taken together.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    came: f64,
    expected: f64,
    known: f64,
    /// How many events the incident adds.
    added: f64,
}

impl Scale {
    fn of(candidate: &Candidate, direction: Direction, level: f64) -> Self {
        let sums = candidate.sums;
        let expected = (sums.expected * level).min(sums.whole);
        let (change, of) = match direction {
            Direction::Rise => (sums.came - expected, sums.whole - expected),
            Direction::Fall => (expected - sums.came, expected),
        };
        let effect = if of > 0.0 {
            (change / of).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mass = sums.came.max(expected);
        Self {
            direction,
            level,
            effect,
            least: if sums.leaves > FINEST {
                mass / f64::from(FINEST)
            } else {
                0.0
            },
            together: Cell::default(),
            score: -PER_ATTRIBUTE * f64::from(candidate.element.layer()),
        }
    }

    fn add(&mut self, leaf: &Leaf) {
        if self.effect <= 0.0 {
            return;
        }
        let expected = (leaf.expected * self.level).min(leaf.whole);
        let cell = &mut self.together;
        cell.came += leaf.came;
        cell.expected += expected;
        cell.known += leaf.known;
        cell.added += match self.direction {
            Direction::Rise => self.effect * (leaf.whole - expected),
            Direction::Fall => -self.effect * expected,
        };
        if cell.expected + cell.added.max(0.0) >= self.least {
            self.finish_cell();
        }
    }

    fn finish_cell(&mut self) {
        let cell = std::mem::take(&mut self.together);
        if cell.expected <= 0.0 {
            return;
        }
        let usual = DRIFT + 1.0 / cell.known;
        let with = cell.expected + cell.added;
        let square = |number: f64| number * number;
        let uneven =
            (usual * square(cell.expected) + UNEVENNESS * square(cell.added)) / square(with);
        self.score +=
            ln_likelihood(cell.came, with, uneven) - ln_likelihood(cell.came, cell.expected, usual);
    }

    /// The evidence; nothing at all if the candidate did not change that way.
    fn score(mut self) -> f64 {
        self.finish_cell();
        if self.effect > 0.0 {
            self.score
        } else {
            f64::NEG_INFINITY
        }
    }
}
