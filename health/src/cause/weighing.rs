//! Weighs candidates leaf by leaf: do the counts fit an incident in this combination better than no incident?
//!
//! In an incident, some of the attempts that would otherwise have succeeded fail. Their share differs from
//! leaf to leaf: it is exponentially distributed around the share of the whole combination. Without an incident, the
//! count of a leaf is near its expectation. The expectation drifts naturally from window to window, and is less certain
//! if the leaf has a short history. In both cases, counts are negative binomial. So a leaf that is far from both cases is
//! little evidence for either, even if it is large, and a single leaf with an enormous rise does not outweigh its
//! neighbours.

use super::candidates::{Candidate, Direction, Sums};
use super::counted::{Counted, Leaf};
use super::leaves::Element;
use crate::stats::mass::HALF_LN_TWO_PI;

/// The natural variance of a leaf's rate from one time to another, relative to the square of the rate: the standard
/// deviation is a fifth of the rate.
const DRIFT: f64 = 0.04;
/// The variance of an incident's effect between leaves, relative to the square of the effect, as in an exponential
/// distribution.
const UNEVENNESS: f64 = 1.0;
/// The penalty for each attribute: ln 2. With one attribute more, a combination must make the counts twice as probable
/// to win.
const PER_ATTRIBUTE: f64 = std::f64::consts::LN_2;
/// If a combination has at most this many leaves, they are weighed one by one. If it has more, neighbours are weighed
/// together.
const FINEST: u32 = 2048;

/// Returns how much better each candidate explains the counts of its leaves than no incident does. It assumes that leaves
/// without an incident have `level` times their expectation. The last result is for the combination of everything.
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

/// For each value, the candidates that allow it, as bits. A candidate allows any value of an attribute that it doesn't
/// name. The last bit is the combination of everything.
struct Membership {
    /// The bits of all candidates and of everything.
    all: u64,
    /// For each attribute and value, the candidates that allow it.
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
            for (bit, element) in
                (0..63).zip(elements.clone()).filter(|(_, element)| element.names(place))
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
        columns.fold(self.all, |bits, (values, ids)| bits & values[ids[leaf] as usize])
    }
}

/// The evidence for one candidate so far.
struct Scale {
    direction: Direction,
    level: f64,
    /// For a rise, the share of the other events that become events of the part; for a fall, the share of the events of the
    /// part that the incident takes away.
    effect: f64,
    /// Leaves are weighed together until their expected events reach this number.
    least: f64,
    together: Cell,
    score: f64,
}

/// One leaf, or neighbours that are weighed together.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    observed: f64,
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
            Direction::Rise => (sums.observed - expected, sums.whole - expected),
            Direction::Fall => (expected - sums.observed, expected),
        };
        let effect = if of > 0.0 { (change / of).clamp(0.0, 1.0) } else { 0.0 };
        let mass = sums.observed.max(expected);
        Self {
            direction,
            level,
            effect,
            least: if sums.leaves > FINEST { mass / f64::from(FINEST) } else { 0.0 },
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
        cell.observed += leaf.observed;
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
        let gain = ln_likelihood(cell.observed, with, uneven)
            - ln_likelihood(cell.observed, cell.expected, usual);
        // A leaf that moved in the opposite direction isn't evidence for an incident, no matter how uneven incidents are.
        let is_against = (cell.observed - cell.expected) * cell.added < 0.0;
        self.score += if is_against { gain.min(0.0) } else { gain };
    }

    /// Returns the evidence; negative infinity if the candidate did not change in this direction.
    fn score(mut self) -> f64 {
        self.finish_cell();
        if self.effect > 0.0 { self.score } else { f64::NEG_INFINITY }
    }
}

/// Returns the logarithm of the probability of a count under a negative binomial distribution, without the terms that
/// depend only on the count. The count is Poisson around a mean that itself varies, with the given relative variance.
pub(crate) fn ln_likelihood(count: f64, mean: f64, relative_variance: f64) -> f64 {
    let shape = 1.0 / relative_variance.clamp(LEAST, MOST);
    let mean = mean.clamp(LEAST, MOST);
    let spread = shape + mean;
    let none = shape * libm::log(shape / spread);
    if count <= 0.0 {
        return none;
    }
    none + count * libm::log(mean / spread) + ln_rising(shape, count)
}

/// Bounds of divisors. The range is far wider than the range of counts.
const LEAST: f64 = 1e-12;
const MOST: f64 = 1e24;

/// Returns ln Γ(from + steps) − ln Γ(from). This is the logarithm of the product from · (from + 1) · … with `steps` factors.
pub(crate) fn ln_rising(from: f64, steps: f64) -> f64 {
    if steps <= FEW {
        return libm::log(rising(from, steps));
    }
    if from > FEW {
        return ln_gamma(from + steps) - ln_gamma(from);
    }
    ln_gamma(from + steps) - ln_gamma(from + FEW) + libm::log(rising(from, FEW))
}

/// Up to this many factors are multiplied one by one. A product is faster than two series, and finite for factors up to
/// 10^18.
const FEW: f64 = 16.0;

fn rising(from: f64, steps: f64) -> f64 {
    let mut product = 1.0;
    let mut done = 0.0;
    while done < steps {
        product *= from + done;
        done += 1.0;
    }
    product
}

/// Returns ln Γ by Stirling's series, which is exact to 13 digits above [`FEW`].
fn ln_gamma(of: f64) -> f64 {
    let inverse = 1.0 / of;
    let square = inverse * inverse;
    let series =
        inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (of - 0.5) * libm::log(of) - of + HALF_LN_TWO_PI + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_product_is_the_ratio_of_gamma_functions() {
        for from in [1e-9, 0.04, 0.5, 1.0, 7.25, 15.9, 16.0, 16.1, 26.0, 400.0] {
            for steps in [0.0, 1.0, 2.0, 15.0, 16.0, 17.0, 100.0, 1e6, 1e12] {
                let exact = libm::lgamma(from + steps) - libm::lgamma(from);
                let off = (ln_rising(from, steps) - exact).abs();
                assert!(
                    off <= 1e-12 * libm::lgamma(from + steps).abs().max(10.0),
                    "{from} {steps} {off}"
                );
            }
        }
    }

    #[test]
    fn a_likelihood_is_finite_and_highest_if_the_mean_is_the_count() {
        for count in [0.0, 1.0, 30.0, 1e9, 1.8e19] {
            for variance in [0.0, 0.04, 1.0, 1e30, f64::INFINITY] {
                for mean in [0.0, 1e-300, 1e-3, 1.0, 1e19, f64::INFINITY] {
                    assert!(ln_likelihood(count, mean, variance).is_finite());
                }
            }
            let at = |mean: f64| ln_likelihood(count, mean, 0.04);
            assert!(at(count) >= at(count * 1.5 + 0.1) && at(count) >= at(count * 0.5));
        }
    }
}
