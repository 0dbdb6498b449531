//! The windows that a level is learned from.

use crate::baseline::prepared::Prepared;

/// The windows that a level is learned from, by columns, in rounds: one for each season.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) parts: Vec<f64>,
    pub(crate) part_roots: Vec<f64>,
    pub(crate) wholes: Vec<f64>,
    pub(crate) whole_roots: Vec<f64>,
    /// How many windows from the slot itself: negative before it.
    pub(crate) offsets: Vec<f64>,
    /// What each window counts for, 0 to 1.
    pub(crate) weights: Vec<f64>,
    pub(crate) rounds: Vec<Round>,
}

/// The windows of one season.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// How many seasons ago.
    pub(crate) ago: f64,
    /// Where its windows begin and end in the columns.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Sample {
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Takes the windows around the slot of `at` in each of the `most` seasons before it.
    pub(crate) fn fill(
        &mut self,
        from: &Prepared,
        at: usize,
        period: usize,
        most: usize,
        neighbours: usize,
    ) {
        self.clear();
        for ago in 1..=most {
            let Some(slot) = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back))
            else {
                break;
            };
            let start = self.len();
            let last = slot.saturating_add(neighbours).min(at - 1);
            for window in slot.saturating_sub(neighbours)..=last {
                if from.teaches[window] {
                    self.take(from, window, window as f64 - slot as f64);
                }
            }
            if self.len() > start {
                self.rounds.push(Round {
                    ago: ago as f64,
                    start,
                    end: self.len(),
                });
            }
        }
    }

    fn take(&mut self, from: &Prepared, window: usize, offset: f64) {
        let (whole, whole_root) = from.whole(window);
        self.parts.push(from.parts[window]);
        self.part_roots.push(from.part_roots[window]);
        self.wholes.push(whole);
        self.whole_roots.push(whole_root);
        self.offsets.push(offset);
        self.weights.push(1.0);
    }

    fn clear(&mut self) {
        let columns = [
            &mut self.parts,
            &mut self.part_roots,
            &mut self.wholes,
            &mut self.whole_roots,
            &mut self.offsets,
            &mut self.weights,
        ];
        columns.into_iter().for_each(Vec::clear);
        self.rounds.clear();
    }

    /// Parts and wholes of a round, weighted.
    pub(crate) fn totals(&self, round: Round) -> (f64, f64) {
        let range = round.start..round.end;
        let (mut part, mut whole) = (0.0, 0.0);
        for at in range {
            part += self.weights[at] * self.parts[at];
            whole += self.weights[at] * self.wholes[at];
        }
        (part, whole)
    }
}
