//! Computes how much more likely the deviations of some leaves are if the leaves have one cause.

use std::f64::consts::TAU;

use super::noise::Noise;
use super::points::Points;

/// The variance of a cause's leaves, relative to the variance of the noise, has an inverse gamma prior with this shape
/// and scale. The prior weighs as much as two leaves.
const SHAPE: f64 = 1.0;
const SCALE: f64 = 0.5;
/// The share of a cause's leaves that don't follow the cause.
const APART: f64 = 0.05;
/// The minimum density of the leaves that don't follow their cause. They may deviate by any amount.
const APART_DENSITY: f64 = 0.02;
/// The maximum number of leaves of a combination that are examined one by one.
const MOST: usize = 2048;
/// The minimum standard deviation of a cause's leaves, and the bounds of the assumed standard deviation. Neither includes the
/// standard deviation of counts.
const LEAST_SPREAD: f64 = 0.03;
const ASSUMED_SPREAD: [f64; 2] = [0.05, 0.15];

/// The sums over leaves that are needed to compute the evidence for a cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) leaves: u32,
    /// The log density without a cause, except for terms that are the same with a cause.
    null: f64,
    weight: f64,
    first: f64,
    second: f64,
}

impl Cell {
    /// Returns the terms of one leaf, and its log density without a cause.
    pub(crate) fn of(deviation: f64, size: f64, noise: &Noise) -> (Self, f64) {
        let variance = noise.variance(size);
        let weight = 1.0 / variance;
        let density = noise.log_density(deviation, size);
        let cell = Self {
            leaves: 1,
            null: density + 0.5 * libm::log(TAU * variance),
            weight,
            first: weight * deviation,
            second: weight * deviation * deviation,
        };
        (cell, density)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.leaves += other.leaves;
        self.null += other.null;
        self.weight += other.weight;
        self.first += other.first;
        self.second += other.second;
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.leaves = self.leaves.saturating_sub(other.leaves);
        self.null -= other.null;
        self.weight -= other.weight;
        self.first -= other.first;
        self.second -= other.second;
    }

    /// Returns the weighted mean deviation.
    pub(crate) fn mean(&self) -> f64 {
        if self.leaves == 0 || self.weight <= 0.0 { 0.0 } else { self.first / self.weight }
    }
}

/// Computes the evidence for a cause from sums over its leaves. The leaves are assumed to be normally distributed around
/// one deviation. Neither this deviation nor the variance of the leaves is known, so both are integrated out.
pub(crate) struct Evidence {
    /// For each number of leaves, the term that depends only on this number.
    shapes: Vec<f64>,
}

impl Evidence {
    pub(crate) fn new(leaves: usize) -> Self {
        let shapes = (0..=leaves.min(4096)).map(|leaves| shape(leaves as f64));
        Self { shapes: shapes.collect() }
    }

    /// Returns the log of how much more likely the leaves are with a cause of their own.
    pub(crate) fn of(&self, cell: &Cell) -> f64 {
        let leaves = f64::from(cell.leaves);
        let known = self.shapes.get(cell.leaves as usize).copied();
        let spread = (cell.second - cell.first * cell.mean()).max(0.0);
        known.unwrap_or_else(|| shape(leaves))
            - (SHAPE + 0.5 * (leaves - 1.0)) * libm::log(SCALE + 0.5 * spread)
            - 0.5 * libm::log(cell.weight.max(f64::MIN_POSITIVE))
            - cell.null
    }
}

fn shape(leaves: f64) -> f64 {
    let half = SHAPE + 0.5 * (leaves - 1.0);
    libm::lgamma(half.max(SHAPE)) - libm::lgamma(SHAPE)
        + SHAPE * libm::log(SCALE)
        + 0.5 * libm::log(TAU)
}

/// A cause, fitted to its leaves one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// The log of how much more likely the leaves are with the cause.
    pub(crate) gain: f64,
    /// How far the leaves deviate.
    pub(crate) deviation: f64,
}

/// Computes the evidence for a cause leaf by leaf. Some leaves may not follow the cause, because another cause also affects them,
/// or because this cause doesn't affect them.
pub(crate) struct Fitter<'a> {
    pub(crate) points: &'a Points,
    pub(crate) noise: &'a Noise,
    /// The log density of each leaf without a cause.
    pub(crate) densities: &'a [f64],
}

/// A leaf in the fit.
struct Member {
    deviation: f64,
    /// The part of the variance that depends on the size of the leaf.
    counting: f64,
    /// The log density without a cause.
    null: f64,
    /// The density if the leaf doesn't follow the cause, times the share of such leaves.
    apart: f64,
}

impl Fitter<'_> {
    /// Fits a cause to some leaves.
    pub(crate) fn fit(&self, leaves: &[u32]) -> Fit {
        let step = leaves.len().div_ceil(MOST).max(1);
        let members: Vec<Member> =
            leaves.iter().step_by(step).map(|leaf| self.member(*leaf as usize)).collect();
        let own = self.noise.relative;
        let [least, most] = ASSUMED_SPREAD.map(|spread| spread * spread);
        let assumed = own.clamp(least, most);
        let widest = (1.5 * own).max(0.04);
        let mut centre = self.median(&members);
        let mut spread = own.max(least);
        for _ in 0..5 {
            (centre, spread) = maximized(&members, centre, spread, assumed);
            spread = spread.clamp(LEAST_SPREAD * LEAST_SPREAD, widest);
        }
        let gain: f64 = members
            .iter()
            .map(|member| {
                let [with, apart] = member.densities(centre, spread);
                libm::log(with + apart) - member.null
            })
            .sum();
        let scaled = gain * leaves.len() as f64 / members.len().max(1) as f64;
        Fit {
            // A penalty for the two numbers that were fitted.
            gain: scaled - libm::log1p(leaves.len() as f64),
            deviation: centre,
        }
    }

    fn member(&self, leaf: usize) -> Member {
        let null = self.densities[leaf];
        Member {
            deviation: self.points.deviations[leaf],
            counting: self.noise.of_counting(self.points.sizes[leaf]),
            null,
            apart: APART * libm::exp(null).max(APART_DENSITY),
        }
    }

    /// Returns the weighted median of the deviations.
    fn median(&self, members: &[Member]) -> f64 {
        let mut sorted: Vec<(f64, f64)> = members
            .iter()
            .map(|member| {
                let variance = self.noise.relative + member.counting;
                (member.deviation, 1.0 / variance)
            })
            .collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let half = 0.5 * sorted.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut sum = 0.0;
        let reached = sorted.iter().find(|(_, weight)| {
            sum += weight;
            sum >= half
        });
        reached.map_or(0.0, |(deviation, _)| *deviation)
    }
}

impl Member {
    /// Returns the density if the leaf follows the cause, and the density if it doesn't.
    fn densities(&self, centre: f64, spread: f64) -> [f64; 2] {
        let variance = spread + self.counting;
        let distance = self.deviation - centre;
        let exponent = -0.5 * distance * distance / variance;
        let with = (1.0 - APART) * libm::exp(exponent) / libm::sqrt(TAU * variance);
        [with, self.apart]
    }
}

/// Does one step of expectation maximization. Returns the centre and the variance of the leaves that follow the cause.
fn maximized(members: &[Member], centre: f64, spread: f64, assumed: f64) -> (f64, f64) {
    let [mut follow, mut weights, mut sum, mut squares] = [0.0; 4];
    for member in members {
        let [with, apart] = member.densities(centre, spread);
        let part = with / (with + apart);
        let weight = part / (spread + member.counting);
        let distance = member.deviation - centre;
        follow += part;
        weights += weight;
        sum += weight * member.deviation;
        squares += part * (distance * distance - member.counting).max(-spread);
    }
    if weights <= 0.0 {
        return (centre, spread);
    }
    (sum / weights, (squares + 2.0 * assumed) / (follow + 2.0))
}
