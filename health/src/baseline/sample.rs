//! The windows that a level is learned from.

use crate::baseline::prepared::{MOST_NEIGHBOURS, Prepared, Source, Together};
use crate::baseline::stream::Stream;

/// The windows that a level is learned from, in rounds: one for each season.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) rounds: Vec<Round>,
    /// How many windows there are.
    pub(crate) windows: usize,
    /// What is expected at each offset from the slot, in parts of what is expected at the slot.
    pub(crate) factors: Vec<f64>,
    /// Whether any of them is not 1.
    pub(crate) has_factors: bool,
    /// The offset of the slot itself.
    pub(crate) centre: usize,
}

/// Adjacent windows around the slot, in one season.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// How many seasons ago.
    pub(crate) ago: f64,
    /// The first window, and how many there are.
    pub(crate) first: usize,
    pub(crate) length: usize,
    /// The offset of the first one.
    pub(crate) offset: usize,
    pub(crate) together: Together,
    /// Their parts and wholes; later, weighted.
    pub(crate) part: f64,
    pub(crate) whole: f64,
}

impl Sample {
    /// Takes the windows around the slot of `at` in each of the `most` seasons before it.
    pub(crate) fn fill(
        &mut self,
        from: &impl Source,
        at: usize,
        period: usize,
        most: usize,
        neighbours: usize,
    ) {
        self.rounds.clear();
        self.windows = 0;
        let neighbours = neighbours.min(at).min(MOST_NEIGHBOURS);
        self.centre = neighbours;
        self.has_factors = false;
        self.factors.clear();
        self.factors.resize(2 * neighbours + 1, 1.0);
        for ago in 1..=most {
            let Some(slot) = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back))
            else {
                break;
            };
            let first = slot.saturating_sub(neighbours);
            let length = slot.saturating_add(neighbours).min(at - 1) + 1 - first;
            let together = from.together(first..first + length);
            if together.all.teaches() {
                self.windows += together.all.windows as usize;
                self.rounds.push(Round {
                    ago: ago as f64,
                    first,
                    length,
                    offset: first + neighbours - slot,
                    together,
                    part: together.all.part,
                    whole: together.all.whole,
                });
            }
        }
    }

    /// Copies the windows of the sample only; its rounds lie in the copy from then on.
    pub(crate) fn gather(&mut self, stream: &Stream<'_>) -> Vec<Prepared> {
        let mut windows = Vec::with_capacity(self.rounds.len() * self.factors.len());
        for round in &mut self.rounds {
            let first = windows.len();
            windows.extend(
                (round.first..round.first + round.length)
                    .map(|at| Prepared::new(stream.teaching_at(at))),
            );
            round.first = first;
        }
        windows
    }

    /// The mean whole of a window.
    pub(crate) fn mean_whole(&self) -> f64 {
        self.rounds.iter().map(|round| round.whole).sum::<f64>() / self.windows.max(1) as f64
    }
}
