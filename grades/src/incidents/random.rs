//! Random numbers that are the same on every platform: integers from a hash, and floats by the crate `libm`.

use crate::mix::{STEP, mix};

/// A stream of random numbers. Streams with different names are independent, so a change in one part of a simulation does
/// not affect the other parts.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// The stream of a name, such as `[seed, what, which, when]`.
    pub(super) fn of(name: &[u64]) -> Self {
        Self(name.iter().fold(0, |hash, part| mix(hash ^ part)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a separate sequence. Draws from it do not affect this one.
    pub(super) fn part(&mut self) -> Self {
        Self(self.next())
    }

    /// A number above 0 and below 1.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A whole number below `end`, which is above 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A whole number from `first` to `last`.
    pub(super) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Shuffles the elements.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for end in (1..all.len()).rev() {
            all.swap(end, self.below(end + 1));
        }
    }

    /// A number between two positive numbers, uniform in its logarithm: as often between 1 and 2 as between 10 and 20.
    pub(super) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// A number from the standard normal distribution (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// A number from a Poisson distribution. If the mean is above 40, the normal distribution approximates it.
    pub(super) fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 40.0 {
            return rounded(mean + libm::sqrt(mean) * self.normal());
        }
        // Returns the first count at which the sum of the probabilities exceeds the drawn number.
        let mut rest = self.unit();
        let mut probability = libm::exp(-mean);
        for count in 0..200_u64 {
            if rest < probability {
                return count;
            }
            rest -= probability;
            probability *= mean / (count + 1) as f64;
        }
        200
    }

    /// A number from a gamma distribution with this shape and scale 1 (Marsaglia and Tsang 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let power = libm::pow(self.unit(), 1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let v = v * v * v;
            if v > 0.0 && libm::log(self.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// A number from a negative binomial distribution. Its variance is the mean plus the square of the mean divided by
    /// the shape.
    pub(super) fn negative_binomial(&mut self, mean: f64, shape: f64) -> u64 {
        let factor = self.gamma(shape) / shape;
        self.poisson(mean * factor)
    }

    /// How many of `trials` succeed. If the mean is above 40, the normal distribution approximates it.
    pub(super) fn binomial(&mut self, trials: u64, probability: f64) -> u64 {
        if probability > 0.5 {
            return trials - self.binomial(trials, 1.0 - probability);
        }
        let mean = trials as f64 * probability;
        if mean > 40.0 {
            let deviation = libm::sqrt(mean * (1.0 - probability));
            return rounded(mean + deviation * self.normal()).min(trials);
        }
        let odds = probability / (1.0 - probability);
        let mut rest = self.unit();
        // `pow` would take longer than `exp` and `log1p` together.
        let mut mass = libm::exp(trials as f64 * libm::log1p(-probability));
        for count in 0..trials.min(200) {
            if rest < mass {
                return count;
            }
            rest -= mass;
            mass *= odds * (trials - count) as f64 / (count + 1) as f64;
        }
        trials.min(200)
    }
}

/// The nearest whole number; 0 for a negative number.
fn rounded(number: f64) -> u64 {
    libm::round(number.max(0.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean and the variance of 20,000 draws.
    fn moments(mut draw: impl FnMut(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::of(&[7]);
        let all: Vec<f64> = (0..20_000).map(|_| draw(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares: f64 = all.iter().map(|one| (one - mean) * (one - mean)).sum();
        (mean, squares / all.len() as f64)
    }

    fn is_near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 0.05 * wanted
    }

    #[test]
    fn counts_have_the_moments_of_their_distributions() {
        for wanted in [0.3, 7.0, 39.0, 41.0, 900.0] {
            let (mean, variance) = moments(|random| random.poisson(wanted) as f64);
            assert!(is_near(mean, wanted), "{wanted}: {mean}");
            assert!(is_near(variance, wanted), "{wanted}: {variance}");
        }
        for (wanted, shape) in [(3.0, 0.7), (50.0, 8.0), (900.0, 40.0)] {
            let (mean, variance) = moments(|random| random.negative_binomial(wanted, shape) as f64);
            assert!(is_near(mean, wanted), "{wanted}: {mean}");
            let squared = wanted + wanted * wanted / shape;
            assert!(is_near(variance, squared), "{wanted}: {variance}");
        }
        for (trials, probability) in [(20, 0.1), (300, 0.02), (900, 0.7), (5_000, 0.4)] {
            let (mean, variance) = moments(|random| random.binomial(trials, probability) as f64);
            let wanted = trials as f64 * probability;
            assert!(is_near(mean, wanted), "{trials}: {mean}");
            assert!(is_near(variance, wanted * (1.0 - probability)), "{trials}: {variance}");
        }
    }

    #[test]
    fn extremes_are_certain() {
        let mut random = Random::of(&[1]);
        assert_eq!(random.poisson(0.0), 0);
        assert_eq!(random.binomial(50, 0.0), 0);
        assert_eq!(random.binomial(50, 1.0), 50);
        assert_eq!(random.binomial(0, 0.3), 0);
    }
}
