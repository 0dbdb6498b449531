//! How likely counts differ so much without any change.

use super::candidates::Sums;
use super::counted::{Counted, Leaf};
use super::leaves::{Element, Leaves, Tally};
use crate::stats::tails::negative_binomial;

/// A change is within normal variation if counts vary so much, without any change, more often than this.
pub(crate) const NORMAL: f64 = 0.02;
/// The variance of a rate from one time to another that all leaves of a combination have in common, relative to the
/// square of the rate: a drift of a twentieth.
const DRIFT: f64 = 0.0025;
/// More leaves than this don't make the estimate better.
const MOST: usize = 4096;
/// Leaves with fewer expected events say little about their drift.
const LEAST: f64 = 5.0;
/// The median of the square of a normal variable with variance 1.
const MEDIAN: f64 = 0.4549;

/// How much the rates of single leaves drift.
pub(crate) struct Chance {
    /// The variance of the rate of a leaf, relative to the square of the rate.
    drift: f64,
    is_other_part: bool,
}

impl Chance {
    /// Learns the drift of leaves from how far half of them deviate.
    pub(crate) fn of(counted: &Counted) -> Self {
        let sums = counted
            .leaves
            .iter()
            .fold([0.0; 2], |[came, expected], leaf| {
                [came + leaf.came, expected + leaf.expected]
            });
        let level = if sums[1] > 0.0 {
            sums[0] / sums[1]
        } else {
            1.0
        };
        let large = |leaf: &&Leaf| leaf.expected * level >= LEAST;
        let step = counted.leaves.len().div_ceil(MOST).max(1);
        let leaves: Vec<&Leaf> = counted.leaves.iter().filter(large).step_by(step).collect();
        let explains = |drift: f64| {
            let mut squares: Vec<f64> = leaves
                .iter()
                .map(|leaf| {
                    let mean = leaf.expected * level;
                    let apart = leaf.came - mean;
                    apart * apart / (mean + mean * mean * (1.0 / leaf.known + drift))
                })
                .collect();
            squares.sort_unstable_by(f64::total_cmp);
            squares
                .get(squares.len() / 2)
                .is_none_or(|median| *median <= MEDIAN)
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
        Self {
            drift: high,
            is_other_part: counted.is_other_part,
        }
    }

    /// The probability that a combination with these counts, before and now, deviates at least so far from `level` times
    /// its rate before.
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

    /// The probability that all leaves together deviate at least so far from their rate before.
    pub(crate) fn of_all(&self, leaves: &Leaves, all: &Sums) -> f64 {
        // Of many leaves, each has a small part of the sum, so their own drifts nearly cancel out.
        let squares = all.expected * all.expected / f64::from(all.leaves.max(1));
        self.of_sums(leaves.totals(), 1.0, squares)
    }

    /// `squares` is the sum of the squares of the expected counts of the leaves.
    fn of_sums(&self, sums: [Tally; 2], level: f64, squares: f64) -> f64 {
        let part = |tally: Tally| match self.is_other_part {
            true => tally.whole.saturating_sub(tally.part),
            false => tally.part,
        };
        let [before, now] = sums.map(Tally::sound);
        // Half an event more, so that a rate of 0 is not certain.
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
