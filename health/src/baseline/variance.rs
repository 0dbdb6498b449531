//! How much a stream varies around its levels.

use super::sample::{Prepared, Sample, Together};

/// A dispersion that grows with the expectation E: φ + α·E. Independent events cause φ. Factors by which whole days are
/// higher or lower cause α. Both are learned from the squared residuals of the windows before; old windows fade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The factor by which a window's weight shrinks with each later window.
    keep: f64,
    windows: f64,
    /// Weighted sums of 1, E, E², r and r·E, where r is a squared residual over E.
    sums: [f64; 5],
    phi: f64,
    alpha: f64,
}

/// Residuals above 2.58 standard deviations (one in a hundred) are incidents, and are capped at this limit.
pub(crate) const FAR_SQUARED: f64 = 2.58 * 2.58;

/// The maximum number of independent windows that earlier windows count as. Because of autocorrelation, eight windows
/// count as one.
const MOST: f64 = 16.0;
const EACH: f64 = 1.0 / 8.0;

impl Noise {
    /// A noise that forgets: the weight of a window falls by a factor of e in this many windows.
    pub(crate) fn fading(windows: usize) -> Self {
        Self {
            keep: 1.0 - 1.0 / (windows.max(64) as f64),
            windows: 0.0,
            sums: [0.0; 5],
            phi: 1.0,
            alpha: 0.0,
        }
    }

    /// How many independent windows it is based on.
    pub(crate) fn support(&self) -> f64 {
        (self.windows * EACH).min(MOST)
    }

    /// The dispersion for this expected count.
    pub(crate) fn at(&self, expected: f64) -> f64 {
        self.phi + self.alpha * expected
    }

    /// Learns from a window. `squared` is its squared deviation from the expectation, divided by the variance of a
    /// Poisson count. `usual` is the dispersion that was expected.
    pub(crate) fn learn(&mut self, expected: f64, squared: f64, usual: f64) {
        let residual = squared.min(FAR_SQUARED * usual);
        // Large expectations come with large residuals, which must neither dominate the other windows nor be dominated
        // by them.
        let weight = 1.0 / (1.0 + expected);
        let terms = [
            1.0,
            expected,
            expected * expected,
            residual,
            residual * expected,
        ];
        for (sum, term) in self.sums.iter_mut().zip(terms) {
            *sum = *sum * self.keep + weight * term;
        }
        self.windows = self.windows * self.keep + 1.0;
        (self.phi, self.alpha) = self.solved();
    }

    /// The weighted least squares of r on E, with φ of at least 1 and α of at least 0.
    fn solved(&self) -> (f64, f64) {
        let [one, e, square, r, r_e] = self.sums;
        let determinant = one * square - e * e;
        if determinant > 1e-6 * one * square {
            let alpha = (one * r_e - e * r) / determinant;
            let phi = (r - alpha * e) / one;
            if alpha >= 0.0 && phi >= 1.0 {
                return (phi, alpha);
            }
            if alpha >= 0.0 && square > 0.0 {
                return (1.0, ((r_e - e) / square).max(0.0));
            }
        }
        ((r / one).max(1.0), 0.0)
    }
}

/// Weighted sums over a sample: windows far from a level lose weight, with the square of their distance.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) parts: f64,
    /// The sum of the wholes, each times the factor of its offset.
    pub(crate) wholes: f64,
    /// Sums for the variance: of 1, of parts, of wholes, and of squared parts over wholes. Their weights are squared,
    /// because windows with little weight say little about the variance.
    windows: f64,
    parts_too: f64,
    wholes_too: f64,
    squares: f64,
}

impl Sums {
    /// The sums around a level. Recomputes the totals of the rounds. Adds the parts and wholes of each offset to
    /// `offsets`, if it has any.
    pub(crate) fn around(
        from: &[Prepared],
        sample: &mut Sample,
        rate: f64,
        dispersion: f64,
        offsets: &mut [(f64, f64)],
    ) -> Self {
        let level = Around::new(rate, dispersion);
        let mut sums = Self::default();
        for round in &mut sample.rounds {
            let windows = &from[round.first..round.first + round.length];
            let offsets = offsets.get_mut(round.offset..).unwrap_or_default();
            if sample.has_factors || !level.are_near(&round.together) {
                let factors = &sample.factors[round.offset..];
                (round.part, round.whole) = sums.weigh(windows, factors, &level, offsets);
            } else {
                let all = &round.together.all;
                (round.part, round.whole) = (all.part, all.whole);
                sums.add(windows, all, offsets);
            }
            sums.parts += round.part;
            sums.wholes += round.whole;
        }
        sums
    }

    /// Adds a round whose windows all keep their full weight, as most rounds do.
    fn add(&mut self, windows: &[Prepared], all: &Prepared, offsets: &mut [(f64, f64)]) {
        self.windows += all.windows;
        self.parts_too += all.part;
        self.wholes_too += all.whole;
        self.squares += all.square;
        for (window, offset) in windows.iter().zip(offsets) {
            offset.0 += window.part;
            offset.1 += window.whole;
        }
    }

    /// Adds a round window by window, and returns its weighted part and whole.
    fn weigh(
        &mut self,
        windows: &[Prepared],
        factors: &[f64],
        level: &Around,
        offsets: &mut [(f64, f64)],
    ) -> (f64, f64) {
        let (mut part, mut whole) = (0.0, 0.0);
        for (at, (window, factor)) in windows.iter().zip(factors).enumerate() {
            let whole_here = window.whole * factor;
            let weight = window.windows * level.weight(window.part, whole_here);
            let (part_of, whole_of) = (weight * window.part, weight * whole_here);
            part += part_of;
            whole += whole_of;
            if let Some(offset) = offsets.get_mut(at) {
                offset.0 += part_of;
                offset.1 += whole_of;
            }
            self.windows += weight * weight;
            self.parts_too += weight * part_of;
            self.wholes_too += weight * whole_of;
            self.squares += weight * weight * window.square / factor;
        }
        (part, whole)
    }

    /// The dispersion around a level, relative to a Poisson count, and how many independent windows it is based on,
    /// given the number of fitted parameters.
    pub(crate) fn dispersion(&self, rate: f64, parameters: usize) -> (f64, f64) {
        let residuals = self.squares / rate - 2.0 * self.parts_too + rate * self.wholes_too;
        let freedom = (self.windows - parameters as f64).max(0.5);
        (residuals.max(0.0) / freedom, freedom)
    }
}

/// A level, and how far from it a window keeps its weight.
struct Around {
    rate: f64,
    /// The maximum square of Anscombe's residual for full weight.
    far: f64,
    /// `far` times the third power of the rate.
    reach: f64,
}

impl Around {
    fn new(rate: f64, dispersion: f64) -> Self {
        let far = FAR_SQUARED * dispersion;
        Self {
            rate,
            far,
            reach: far * rate * rate * rate,
        }
    }

    /// How much a window counts: by Anscombe's residual of a Poisson count, 3/2·(x^(2/3) − E^(2/3)) / E^(1/6).
    fn weight(&self, part: f64, whole: f64) -> f64 {
        if self.is_near(whole, part / whole) {
            return 1.0;
        }
        let (x, root) = (libm::cbrt(part), libm::cbrt(self.rate * whole));
        let distance = x * x - root * root;
        (self.far * root / (2.25 * distance * distance)).min(1.0)
    }

    /// Whether windows of at most this whole, with this part per whole, certainly keep their full weight. This computes
    /// no roots. With d = 1 − x/E, 1 − (x/E)^(2/3) is at most 2/3·d + 1/3·d² where d is positive, and otherwise between
    /// 2/3·d and 0.
    fn is_near(&self, whole: f64, rate: f64) -> bool {
        let gap = self.rate - rate;
        let fall = if gap > 0.0 { gap } else { 0.0 };
        let distance = gap * (self.rate + 0.5 * fall);
        whole * distance * distance <= self.reach
    }

    /// Whether all windows of a round certainly keep their full weight.
    fn are_near(&self, round: &Together) -> bool {
        self.is_near(round.widest, round.lowest) && self.is_near(round.widest, round.highest)
    }
}

#[cfg(test)]
mod tests {
    use super::{Around, FAR_SQUARED};

    /// The square of Anscombe's residual.
    fn residual(part: f64, expected: f64) -> f64 {
        let power = |value: f64, power: f64| libm::pow(value, power);
        let distance = power(part, 2.0 / 3.0) - power(expected, 2.0 / 3.0);
        2.25 * distance * distance / power(expected, 1.0 / 3.0)
    }

    #[test]
    fn windows_that_are_called_near_keep_their_weight_by_the_residual() {
        let (mut near, mut kept, mut lost) = (0, 0, 0);
        for (dispersion, whole) in [1.0, 3.0, 40.0, 900.0]
            .into_iter()
            .flat_map(|dispersion| [1.0, 30.0, 1e4, 1e9].map(|whole| (dispersion, whole)))
        {
            for rate in [1e-7, 1e-4, 0.01, 0.3, 1.0, 20.0, 1e6] {
                let (level, expected) = (Around::new(rate, dispersion), rate * whole);
                let deviation = libm::sqrt(expected * dispersion);
                for step in -400..=400 {
                    let part = expected + 0.01 * f64::from(step) * deviation;
                    if part < 0.0 {
                        continue;
                    }
                    let squared = residual(part, expected) / (FAR_SQUARED * dispersion);
                    let weight = level.weight(part, whole);
                    if level.is_near(whole, part / whole) {
                        near += 1;
                        assert!(
                            squared < 1.0 + 1e-6,
                            "{part} of {whole} at {rate}: {squared}"
                        );
                    } else {
                        assert!((weight - (1.0 / squared).min(1.0)).abs() < 1e-6);
                    }
                    kept += i32::from(squared <= 1.0);
                    lost += i32::from(weight < 1.0);
                }
            }
        }
        assert!(
            lost > 5_000 && near <= kept + 10,
            "{near} near, {kept} kept, {lost} lost"
        );
        assert!(2 * near > kept, "roots are rarely taken: {near} of {kept}");
    }
}
