//! Random numbers that are the same on every platform. The same seed repeats a simulation.

use crate::mix::{STEP, mix};

/// A generator (SplitMix64) that a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A separate generator for each list of numbers, such as a seed, a scenario and a run.
    pub(crate) fn new(parts: &[u64]) -> Self {
        let mut random = Self(0x7461_6c6c_7966_6f6c);
        for part in parts {
            random.0 ^= part.wrapping_mul(0xd134_2543_de82_ef95);
            random.0 = random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        mixed
    }

    /// A number between 0 and 1, excluding both.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A whole number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.uniform() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// A standard normal number (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.uniform())).sqrt();
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// A gamma number of this shape and scale 1 (Marsaglia and Tsang 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let power = libm::pow(self.uniform(), 1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let v = v * v * v;
            if v > 0.0 && libm::log(self.uniform()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// A Poisson number, as the sum of Poisson numbers whose means are small enough for Knuth's product.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        let parts = (mean / 16.0).ceil().max(1.0);
        let floor = libm::exp(-mean / parts);
        let mut total = 0;
        for _ in 0..parts as u64 {
            let mut product = self.uniform();
            while product > floor {
                total += 1;
                product *= self.uniform();
            }
        }
        total
    }

    /// A negative binomial number with variance `phi` times the mean; if `phi` is at most 1, a Poisson number.
    pub(crate) fn count(&mut self, mean: f64, phi: f64) -> u64 {
        if phi <= 1.0 {
            return self.poisson(mean);
        }
        let mean = self.gamma(mean / (phi - 1.0)) * (phi - 1.0);
        self.poisson(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(draw: impl Fn(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(&[7]);
        let numbers = (0..20_000).map(|_| draw(&mut random)).collect::<Vec<_>>();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let square = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        (mean, square / numbers.len() as f64)
    }

    fn near(found: f64, expected: f64, share: f64) {
        assert!((found - expected).abs() <= share * expected, "{found} instead of {expected}");
    }

    #[test]
    fn counts_have_the_stated_mean_and_variance() {
        for (mean, phi) in [(0.2, 2.0), (1.5, 5.0), (4.5, 1.0), (42.0, 1.1), (150.0, 3.0)] {
            let (found, variance) = moments(|random| random.count(mean, phi) as f64);
            near(found, mean, 0.06);
            near(variance, phi * mean, 0.08);
        }
    }

    #[test]
    fn normal_numbers_are_standard() {
        let (mean, variance) = moments(|random| 1.0 + random.normal());
        near(mean, 1.0, 0.03);
        near(variance, 1.0, 0.03);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed: &[u64]| Random::new(seed).uniform();
        assert_eq!(draw(&[1, 2]).to_bits(), draw(&[1, 2]).to_bits());
        assert_ne!(draw(&[1, 2]).to_bits(), draw(&[2, 1]).to_bits());
    }
}
