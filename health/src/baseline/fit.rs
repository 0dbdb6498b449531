//! A quasi-Poisson level that is robust against past incidents.
//!
//! As in Noufaily et al. (2013), windows are weighted by their Anscombe residuals and the level is fitted again. Unlike
//! in that paper, the fit begins at a median of the seasons, so that an incident can't hide behind the variance that it
//! causes. Windows that are too low lose weight, too.

use super::sample::{Prepared, Round, Sample};
use super::stream::{Basis, Level};
use super::variance::{Noise, Sums};

/// A fitted level, without its [`Basis`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Events per whole.
    pub(crate) rate: f64,
    /// The dispersion around the true level.
    pub(crate) dispersion: f64,
    /// What the uncertainty about the true level adds to the dispersion, relative to the dispersion.
    pub(crate) uncertainty: f64,
}

impl Fit {
    /// The level, with its basis and how many windows it was learned from.
    pub(crate) fn level(&self, basis: Basis, used: usize, is_rate: bool) -> Level {
        let expected = if is_rate {
            self.rate.min(1.0)
        } else {
            self.rate
        };
        Level {
            expected,
            dispersion: self.dispersion * (1.0 + self.uncertainty),
            basis,
            used,
        }
    }
}

/// Buffers that are reused from one fit to the next.
#[derive(Default)]
pub(crate) struct Bench {
    values: Vec<f64>,
    offsets: Vec<(f64, f64)>,
}

/// Half an event is added to the observed ones, so that a group without events is not expected to stay without them
/// forever.
const HALF_AN_EVENT: f64 = 0.5;
/// Windows of a season are not independent: each counts as half an independent window.
const INDEPENDENT: f64 = 0.5;

/// The level of a sample that has at least one round. `noise` is the known variation of the stream.
pub(crate) fn fit(
    from: &[Prepared],
    sample: &mut Sample,
    noise: &Noise,
    is_rate: bool,
    bench: &mut Bench,
) -> Fit {
    let mean_whole = sample.mean_whole();
    let mut rate = median_rate(sample, &mut bench.values);
    let first = if noise.support() >= 4.0 {
        noise.at(rate * mean_whole)
    } else {
        median_dispersion(sample, rate, is_rate, &mut bench.values)
    };
    bench.offsets.clear();
    bench.offsets.resize(sample.factors.len(), (0.0, 0.0));
    let mut sums = Sums::around(from, sample, rate, first, &mut bench.offsets);
    rate = (sums.parts + HALF_AN_EVENT) / sums.wholes;
    let mut dispersion = first;
    let mut parameters = 1;
    if offsets_differ(&bench.offsets, rate, first)
        && let Some(centre) = factors(from, sample, &mut bench.values)
    {
        rate = centre;
        parameters = sample.factors.len();
    } else {
        dispersion = pooled(&sums, rate, parameters, is_rate, noise, mean_whole);
    }
    sums = Sums::around(from, sample, rate, dispersion, &mut []);
    rate = (sums.parts + HALF_AN_EVENT) / sums.wholes;
    dispersion = pooled(&sums, rate, parameters, is_rate, noise, mean_whole);
    let uncertainty = 1.0 / sample.rounds.len() as f64;
    match trend(&sample.rounds, rate, dispersion) {
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

/// The variance of a count, relative to a Poisson count: 1 for a volume, less for a rate.
pub(crate) fn variance_of(rate: f64, is_rate: bool) -> f64 {
    if is_rate { (1.0 - rate).max(1e-3) } else { 1.0 }
}

/// The median of the rates of the rounds.
fn median_rate(sample: &Sample, values: &mut Vec<f64>) -> f64 {
    values.clear();
    values.extend(
        sample
            .rounds
            .iter()
            .map(|round| (round.part + HALF_AN_EVENT) / round.whole),
    );
    median(values)
}

/// The dispersion, from the median of the squared residuals of the rounds.
fn median_dispersion(sample: &Sample, rate: f64, is_rate: bool, values: &mut Vec<f64>) -> f64 {
    values.clear();
    values.extend(sample.rounds.iter().map(|round| {
        let expected = rate * round.whole;
        let residual = round.part - expected;
        residual * residual / expected
    }));
    (median(values) / (MEDIAN_OF_SQUARE * variance_of(rate, is_rate))).max(1.0)
}

/// The median of the square of a standard normal number.
const MEDIAN_OF_SQUARE: f64 = 0.454_936_423_119_572_8;

/// The median, by insertion sort because there are few values.
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

/// Whether the slot and its neighbours have different levels (a job that runs at the full hour, the end of a working
/// day): a chi-squared test at about 1 in 100.
fn offsets_differ(offsets: &[(f64, f64)], rate: f64, dispersion: f64) -> bool {
    let freedom = offsets.len().saturating_sub(1) as f64;
    let distance: f64 = offsets
        .iter()
        .filter(|(_, whole)| *whole > 0.0)
        .map(|(part, whole)| (part - rate * whole) * (part - rate * whole) / (rate * whole))
        .sum();
    freedom > 0.0 && distance > dispersion * (freedom + 3.6 * libm::sqrt(2.0 * freedom))
}

/// Gives each offset its own factor, by medians, and returns the rate of the slot itself; `None` if no window of the
/// slot itself is known.
fn factors(from: &[Prepared], sample: &mut Sample, values: &mut Vec<f64>) -> Option<f64> {
    let centre = median_at(from, sample, sample.centre, values)?;
    for offset in 0..sample.factors.len() {
        let rate = median_at(from, sample, offset, values).unwrap_or(centre);
        sample.factors[offset] = (rate / centre).clamp(1e-3, 1e3);
    }
    sample.has_factors = true;
    Some(centre)
}

/// The median of the rates of the windows with this offset.
fn median_at(
    from: &[Prepared],
    sample: &Sample,
    offset: usize,
    values: &mut Vec<f64>,
) -> Option<f64> {
    values.clear();
    for round in &sample.rounds {
        let inside = offset >= round.offset && offset < round.offset + round.length;
        let window = (round.first + offset).saturating_sub(round.offset);
        if inside && from[window].teaches() {
            values.push((from[window].part + HALF_AN_EVENT) / from[window].whole);
        }
    }
    (!values.is_empty()).then(|| median(values))
}

/// The dispersion of the sample, combined with what is known about the stream.
fn pooled(
    sums: &Sums,
    rate: f64,
    parameters: usize,
    is_rate: bool,
    noise: &Noise,
    mean_whole: f64,
) -> f64 {
    let (own, freedom) = sums.dispersion(rate, parameters);
    let (own, counts, known) = (
        own / variance_of(rate, is_rate),
        INDEPENDENT * freedom,
        noise.support(),
    );
    ((counts * own + known * noise.at(rate * mean_whole)) / (counts + known)).max(1.0)
}

/// A log-linear trend: the rate of a round was exp(`alpha` − `growth`·ago).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// The logarithm of the growth in one season.
    pub(crate) growth: f64,
    /// The rate now.
    pub(crate) now: f64,
    /// What its uncertainty adds to the variance now, as a fraction of that variance.
    pub(crate) uncertainty: f64,
}

/// A trend counts only if noise would show one like it with a probability of at most 1 in 100.
const SIGNIFICANT: f64 = 6.63;
/// The minimum number of seasons for a trend.
const FEWEST: usize = 5;
/// The factor by which the current rate may be outside the range of the seasons' rates.
const BEYOND: f64 = 1.5;

/// The trend of the rounds, if it is significant at the given dispersion.
pub(crate) fn trend(rounds: &[Round], rate: f64, dispersion: f64) -> Option<Trend> {
    if rounds.len() < FEWEST {
        return None;
    }
    let (mut whole, mut time) = (0.0, 0.0);
    for round in rounds {
        let weight = round.whole;
        whole += weight;
        time -= weight * round.ago;
    }
    let centre = time / whole;
    let (mut score, mut information) = (0.0, 0.0);
    for round in rounds {
        let (part, whole) = (round.part, round.whole);
        let distance = -round.ago - centre;
        score += distance * (part - rate * whole);
        information += distance * distance * rate * whole;
    }
    let is_significant =
        information > 0.0 && score * score > SIGNIFICANT * dispersion * information;
    is_significant.then(|| {
        fitted(
            rounds,
            centre,
            score / information,
            rate * whole / information,
        )
    })
}

/// The trend by Newton's method, starting at a guess.
fn fitted(rounds: &[Round], centre: f64, guess: f64, relative: f64) -> Trend {
    let mut growth = guess.clamp(-1.0, 1.0);
    let mut at_centre = 0.0;
    for _ in 0..6 {
        let (mut parts, mut sums) = (0.0, [0.0; 3]);
        let mut moment = 0.0;
        for round in rounds {
            let (part, whole) = (round.part, round.whole);
            let distance = -round.ago - centre;
            let weight = whole * libm::exp(growth * distance);
            parts += part;
            moment += part * distance;
            sums[0] += weight;
            sums[1] += weight * distance;
            sums[2] += weight * distance * distance;
        }
        at_centre = parts / sums[0];
        let mean = sums[1] / sums[0];
        let variance = sums[2] / sums[0] - mean * mean;
        if !(parts > 0.0 && variance > 0.0) {
            break;
        }
        growth = (growth + (moment / parts - mean) / variance).clamp(-1.0, 1.0);
    }
    let now = at_centre * libm::exp(-growth * centre);
    Trend {
        growth,
        now: within(rounds, now),
        uncertainty: centre * centre * relative / rounds.len() as f64,
    }
}

/// Limits a rate to the range of the rounds' rates, extended by the factor [`BEYOND`].
fn within(rounds: &[Round], rate: f64) -> f64 {
    let rates = rounds
        .iter()
        .filter(|round| round.whole > 0.0)
        .map(|round| round.part / round.whole);
    let (lowest, highest) = rates.fold((f64::MAX, 0.0_f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    rate.max(lowest.min(highest) / BEYOND).min(highest * BEYOND)
}
