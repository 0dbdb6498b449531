//! Weighted sums over a sample.

use crate::baseline::noise::FAR_SQUARED;
use crate::baseline::prepared::{Prepared, power_two_thirds};
use crate::baseline::sample::{Round, Sample};

/// Weighted sums over a sample: windows far from a level lose weight, with the square of their distance.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) parts: f64,
    /// Of wholes times the factor of their offset.
    pub(crate) wholes: f64,
    /// What makes the variance: sums with squared weights, since windows of little weight say nothing of it. Of 1, of parts,
    /// of wholes, and of squared parts over wholes.
    windows: f64,
    parts_too: f64,
    wholes_too: f64,
    squares: f64,
}

impl Sums {
    /// Around a level. The totals of the rounds are made anew, and so are `offsets`, the parts and wholes of each offset.
    pub(crate) fn around(
        from: &[Prepared],
        sample: &mut Sample,
        rate: f64,
        dispersion: f64,
        offsets: &mut Vec<(f64, f64)>,
    ) -> Self {
        let level = (power_two_thirds(rate), FAR_SQUARED * dispersion / 2.25);
        offsets.clear();
        offsets.resize(sample.factors.len(), (0.0, 0.0));
        let mut sums = Self::default();
        for round in &mut sample.rounds {
            sums.add(from, &sample.factors, round, level, offsets);
        }
        sums
    }

    fn add(
        &mut self,
        from: &[Prepared],
        factors: &[(f64, f64)],
        round: &mut Round,
        level: (f64, f64),
        offsets: &mut [(f64, f64)],
    ) {
        let windows = &from[round.first..round.first + round.length];
        let places = factors[round.offset..]
            .iter()
            .zip(&mut offsets[round.offset..]);
        (round.part, round.whole) = (0.0, 0.0);
        for (window, (factor, offset)) in windows.iter().zip(places) {
            let expected = level.0 * factor.1 * window.whole_root;
            let distance = window.part_root - expected;
            let (squared, allowed) = (distance * distance, level.1 * libm::sqrt(expected));
            let weight = if squared > allowed {
                window.teaches * allowed / squared
            } else {
                window.teaches
            };
            let (part_of, whole_of) = (weight * window.part, weight * window.whole * factor.0);
            round.part += part_of;
            round.whole += whole_of;
            offset.0 += part_of;
            offset.1 += whole_of;
            self.windows += weight * weight;
            self.parts_too += weight * part_of;
            self.wholes_too += weight * whole_of;
            self.squares += weight * weight * window.square / factor.0;
        }
        self.parts += round.part;
        self.wholes += round.whole;
    }

    /// The dispersion around a level, in parts of that of a Poisson count, and how many windows speak for it when it has so many
    /// parameters.
    pub(crate) fn dispersion(&self, rate: f64, parameters: usize) -> (f64, f64) {
        let residuals = self.squares / rate - 2.0 * self.parts_too + rate * self.wholes_too;
        let freedom = (self.windows - parameters as f64).max(0.5);
        (residuals.max(0.0) / freedom, freedom)
    }
}
