//! Computes the probability that chance alone changes the counts this much.

use super::candidates::Sums;
use super::counted::{Counted, Leaf};
use super::leaves::{Element, Leaves, Tally};
use crate::stats::tails::negative_binomial;

/// A change counts as normal variation if its probability by chance alone is above this number.
pub(crate) const NORMAL: f64 = 0.02;
/// The variance of a combination's drift from one time to another, which all of its leaves share. It is relative to the square of
/// the rate: the standard deviation is a twentieth of the rate.
const DRIFT: f64 = 0.0025;
/// The maximum number of leaves that are used. More leaves don't improve the estimate.
const MOST: usize = 4096;
/// Leaves with fewer expected events are left out, because they show little of their drift.
const LEAST: f64 = 5.0;
/// The variance of the drift that is assumed for a leaf, relative to the square of the rate: the standard deviation is
/// a seventh of the rate.
const USUAL: f64 = 0.02;
/// The drift [`USUAL`] weighs as much as the drift of this many leaves. Without it, drift would explain every change of one or
/// two leaves.
const ASSUMED: usize = 3;
/// The median of the square of a normal variable with variance 1.
const MEDIAN: f64 = 0.4549;

/// If there are fewer leaves than this, one of them may be most of the sum.
const FEW: usize = 8;

/// Returns the ratio of observed to expected events. For few leaves, it is the median of their ratios, weighted by the expected
/// events. So one leaf that has changed does not make the other leaves seem to have changed.
fn level(leaves: &[Leaf]) -> f64 {
    let sums = leaves.iter().fold([0.0; 2], |[observed, expected], leaf| {
        [observed + leaf.observed, expected + leaf.expected]
    });
    if sums[1] <= 0.0 {
        return 1.0;
    }
    if leaves.len() >= FEW {
        return sums[0] / sums[1];
    }
    let expected = leaves.iter().filter(|leaf| leaf.expected > 0.0);
    let mut ratios: Vec<(f64, f64)> =
        expected.map(|leaf| (leaf.observed / leaf.expected, leaf.expected)).collect();
    ratios.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut below = 0.0;
    let median = ratios.iter().find(|(_, weight)| {
        below += weight;
        2.0 * below >= sums[1]
    });
    median.map_or(1.0, |(ratio, _)| *ratio)
}

/// How much the rates of single leaves drift.
pub(crate) struct Chance {
    /// The variance of a leaf's rate, relative to the square of the rate.
    drift: f64,
    is_other_part: bool,
}

impl Chance {
    /// Learns the drift of leaves from the median of their squared deviations. The median includes [`ASSUMED`] more
    /// leaves with the drift [`USUAL`].
    pub(crate) fn of(counted: &Counted) -> Self {
        let level = level(&counted.leaves);
        let large = |leaf: &&Leaf| leaf.expected * level >= LEAST;
        let step = counted.leaves.len().div_ceil(MOST).max(1);
        let leaves: Vec<&Leaf> = counted.leaves.iter().filter(large).step_by(step).collect();
        let explains = |drift: f64| {
            let mut squares: Vec<f64> = leaves
                .iter()
                .map(|leaf| {
                    let mean = leaf.expected * level;
                    let difference = leaf.observed - mean;
                    difference * difference / (mean + mean * mean * (1.0 / leaf.known + drift))
                })
                .collect();
            squares.extend([MEDIAN * USUAL / drift; ASSUMED]);
            squares.sort_unstable_by(f64::total_cmp);
            squares.get(squares.len() / 2).is_none_or(|median| *median <= MEDIAN)
        };
        let (mut low, mut high) = (0.0, if explains(0.0) { 0.0 } else { 1.0 });
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if explains(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Self { drift: high, is_other_part: counted.is_other_part }
    }

    /// Returns the probability that a combination deviates at least as far as it does now from `level` times its rate
    /// before. `sums` has its counts before and now.
    pub(crate) fn of_element(
        &self,
        counted: &Counted,
        element: Element,
        sums: [Tally; 2],
        level: f64,
    ) -> f64 {
        let squares: f64 = (0..counted.leaves.len())
            .filter(|leaf| counted.is_in(*leaf, element))
            .map(|leaf| counted.leaves[leaf].expected * counted.leaves[leaf].expected)
            .sum();
        self.of_sums(sums, level, squares * level * level)
    }

    /// Returns the probability that all leaves together deviate at least as far as they do now from their rate before.
    pub(crate) fn of_all(&self, leaves: &Leaves, all: &Sums) -> f64 {
        // Treats all leaves as equally large: their own drifts nearly cancel out if there are many leaves.
        let squares = all.expected * all.expected / f64::from(all.leaves.max(1));
        self.of_sums(leaves.totals(), 1.0, squares)
    }

    /// Returns the probability that the sums of some leaves deviate at least as far as they do. `squares` is the sum of the
    /// squares of the leaves' expected counts.
    fn of_sums(&self, sums: [Tally; 2], level: f64, squares: f64) -> f64 {
        let part = |tally: Tally| tally.counted(self.is_other_part);
        let [before, now] = sums.map(Tally::sound);
        // Adds half an event, so that a rate of 0 before does not make events impossible now.
        let known = part(before) as f64 + 0.5;
        let mean = level * now.whole as f64 * known / (before.whole as f64 + 1.0);
        if mean <= 0.0 {
            return 1.0;
        }
        let variance = mean + mean * mean * (1.0 / known + DRIFT) + self.drift * squares;
        let tails = negative_binomial(part(now), mean, variance / mean);
        (2.0 * libm::exp(tails.low.min(tails.high))).min(1.0)
    }
}
