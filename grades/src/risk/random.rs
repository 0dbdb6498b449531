//! Random numbers that are the same on every platform: a seed gives the same files everywhere.

use crate::mix::{STEP, mix};

/// SplitMix64 (Steele, Lea and Flood 2014): small, and good enough to draw test data.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Different pairs of seed and stream give unrelated numbers.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        let mixed = random.next() ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self { state: mixed }
    }

    fn next(&mut self) -> u64 {
        let mixed = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        mixed
    }

    /// Uniform in [0, 1), with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in [low, high).
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in low..=high.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        let values = (high - low + 1) as f64;
        low + ((self.unit() * values) as usize).min(high - low)
    }

    /// Normal, by Box and Muller; the second number of each pair is not kept.
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let angle = std::f64::consts::TAU * self.unit();
        mean + deviation * radius * libm::cos(angle)
    }

    /// Weibull with scale 1.
    pub(crate) fn weibull(&mut self, shape: f64) -> f64 {
        libm::pow(-libm::log(1.0 - self.unit()), 1.0 / shape)
    }

    /// `count` different numbers below `below`, in increasing order.
    pub(crate) fn sample(&mut self, below: usize, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..below).collect();
        while numbers.len() > count {
            let out = self.between(0, numbers.len() - 1);
            numbers.remove(out);
        }
        numbers
    }
}
