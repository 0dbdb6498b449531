//! A quasi-Poisson level that past incidents do not teach.
//!
//! As Noufaily et al. (2013) do, windows are weighted by their Anscombe residuals and the level is fitted again. Unlike there,
//! the fit begins at a median of the seasons, so that an incident cannot hide behind the variance it makes, and windows that
//! are too low lose weight like those that are too high.

use crate::baseline::noise::{FAR_SQUARED, Noise};
use crate::baseline::prepared::power_two_thirds;
use crate::baseline::sample::Sample;
use crate::baseline::trend::trend;

/// A level, before it has a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Events per whole.
    pub(crate) rate: f64,
    /// The dispersion around the true level.
    pub(crate) dispersion: f64,
    /// What not knowing the true level adds to it, in parts of it.
    pub(crate) uncertainty: f64,
}

/// Half an event is added to what came, so that a group without events is not expected to have none for ever.
const HALF_AN_EVENT: f64 = 0.5;
/// How often the weights are made anew.
const ROUNDS: usize = 2;
/// How much more or less the farthest neighbour may have for being a neighbour.
const STEEPEST: f64 = 0.3;
/// Windows of a season are not independent: each counts for half of one.
const INDEPENDENT: f64 = 0.5;

/// The level of a sample that has at least one round. `noise` is what the stream is known to vary.
pub(crate) fn fit(
    sample: &mut Sample,
    noise: &Noise,
    is_rate: bool,
    medians: &mut Vec<f64>,
) -> Fit {
    let mut rate = median_rate(sample, medians);
    let known = noise.support();
    let mut dispersion = if known >= 4.0 {
        noise.at(rate * mean_whole(sample))
    } else {
        median_dispersion(sample, rate, is_rate, medians)
    };
    let steepest = STEEPEST
        / sample
            .offsets
            .iter()
            .fold(1.0_f64, |most, offset| most.max(offset.abs()));
    let mut slope = 0.0;
    for _ in 0..ROUNDS {
        weigh(sample, rate, dispersion, slope);
        let sums = Sums::of(sample, rate, slope);
        rate = (sums.parts + HALF_AN_EVENT) / sums.wholes;
        let around = Sums::of(sample, rate, slope);
        slope = (slope + around.slope()).clamp(-steepest, steepest);
        dispersion = pooled(
            &around,
            noise,
            rate * mean_whole(sample),
            variance_of(rate, is_rate),
        );
    }
    let uncertainty = 1.0 / sample.rounds.len() as f64;
    match trend(sample, rate, dispersion) {
        Some(trend) => Fit {
            rate: trend.now,
            dispersion,
            uncertainty: uncertainty + trend.uncertainty,
        },
        None => Fit {
            rate,
            dispersion,
            uncertainty,
        },
    }
}

/// The part of a Poisson variance that a binomial count has.
pub(crate) fn variance_of(rate: f64, is_rate: bool) -> f64 {
    if is_rate { (1.0 - rate).max(1e-3) } else { 1.0 }
}

fn mean_whole(sample: &Sample) -> f64 {
    sample.wholes.iter().sum::<f64>() / sample.len() as f64
}

/// The median of the rates of the rounds.
fn median_rate(sample: &Sample, medians: &mut Vec<f64>) -> f64 {
    medians.clear();
    medians.extend(sample.rounds.iter().map(|&round| {
        let (part, whole) = sample.totals(round);
        (part + HALF_AN_EVENT) / whole
    }));
    median(medians)
}

/// From the median of the squared residuals of the rounds.
fn median_dispersion(sample: &Sample, rate: f64, is_rate: bool, medians: &mut Vec<f64>) -> f64 {
    medians.clear();
    medians.extend(sample.rounds.iter().map(|&round| {
        let (part, whole) = sample.totals(round);
        let residual = part - rate * whole;
        residual * residual / (rate * whole * variance_of(rate, is_rate))
    }));
    (median(medians) / MEDIAN_OF_SQUARE).max(1.0)
}

/// The median of the square of a standard normal number.
const MEDIAN_OF_SQUARE: f64 = 0.454_936_423_119_572_8;

/// The median; insertion sort, since there are few.
fn median(values: &mut [f64]) -> f64 {
    for end in 1..values.len() {
        let mut at = end;
        while at > 0 && values[at] < values[at - 1] {
            values.swap(at, at - 1);
            at -= 1;
        }
    }
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        0.5 * (values[middle - 1] + values[middle])
    }
}

/// Windows far from the level lose weight, with the square of their distance.
fn weigh(sample: &mut Sample, rate: f64, dispersion: f64, slope: f64) {
    let root = power_two_thirds(rate);
    let far = FAR_SQUARED * dispersion / 2.25;
    for at in 0..sample.parts.len() {
        // (1 + s) to the power of 2/3, for a slope that is small.
        let tilt = slope * sample.offsets[at];
        let expected = root * sample.whole_roots[at] * (1.0 + tilt * (2.0 / 3.0 - tilt / 9.0));
        let distance = sample.part_roots[at] - expected;
        let squared = distance * distance;
        let allowed = far * libm::sqrt(expected);
        sample.weights[at] = if squared > allowed {
            allowed / squared
        } else {
            1.0
        };
    }
}

/// Weighted sums over a sample, around a level.
#[derive(Default)]
struct Sums {
    parts: f64,
    wholes: f64,
    /// Of squared weights: windows of little weight say nothing of the variance.
    windows: f64,
    squares: f64,
    /// Score and information of the slope, of squared weights too.
    score: f64,
    information: f64,
}

impl Sums {
    fn of(sample: &Sample, rate: f64, slope: f64) -> Self {
        let mut sums = Self::default();
        for at in 0..sample.parts.len() {
            let (weight, offset) = (sample.weights[at], sample.offsets[at]);
            let tilted = sample.wholes[at] * (1.0 + slope * offset);
            sums.parts += weight * sample.parts[at];
            sums.wholes += weight * tilted;
            let expected = rate * tilted;
            let residual = sample.parts[at] - expected;
            let square = weight * weight;
            sums.windows += square;
            sums.squares += square * residual * residual / expected;
            sums.score += square * offset * residual;
            sums.information += square * offset * offset * expected;
        }
        sums
    }

    fn slope(&self) -> f64 {
        if self.information > 0.0 {
            self.score / self.information
        } else {
            0.0
        }
    }
}

/// The dispersion of the sample, joined with what is known of the stream.
fn pooled(sums: &Sums, noise: &Noise, expected: f64, variance: f64) -> f64 {
    let explained = if sums.information > 0.0 {
        sums.score * sums.score / sums.information
    } else {
        0.0
    };
    let lost = if sums.information > 0.0 { 2.0 } else { 1.0 };
    let freedom = (sums.windows - lost).max(0.5);
    let own = (sums.squares - explained).max(0.0) / (freedom * variance);
    let (counts, known) = (INDEPENDENT * freedom, noise.support());
    ((counts * own + known * noise.at(expected)) / (counts + known)).max(1.0)
}
