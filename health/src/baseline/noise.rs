//! How much a stream varies around its levels, learned from all its windows so far.

/// A dispersion that grows with the expectation, φ + α·E: events that come alone make φ, shares by which whole days are higher
/// or lower make α. Learned from the squared residuals of the windows before, the old ones of which fade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// What is left of a window's weight when the next one comes.
    keep: f64,
    windows: f64,
    /// Weighted sums of 1, E, E², r and r·E, where r is a squared residual over E.
    sums: [f64; 5],
    phi: f64,
    alpha: f64,
}

/// Residuals of more than 2.58 deviations (one in a hundred) are incidents, and count as that much.
pub(crate) const FAR_SQUARED: f64 = 2.58 * 2.58;

/// The most that the windows before count for, in windows; autocorrelation makes eight of them one.
const MOST: f64 = 16.0;
const EACH: f64 = 1.0 / 8.0;

impl Noise {
    /// That fades by e in so many windows.
    pub(crate) fn fading(windows: usize) -> Self {
        Self {
            keep: 1.0 - 1.0 / (windows.max(64) as f64),
            windows: 0.0,
            sums: [0.0; 5],
            phi: 1.0,
            alpha: 0.0,
        }
    }

    /// How many independent windows speak for it.
    pub(crate) fn support(&self) -> f64 {
        (self.windows * EACH).min(MOST)
    }

    /// The dispersion where so much is expected.
    pub(crate) fn at(&self, expected: f64) -> f64 {
        self.phi + self.alpha * expected
    }

    /// Learns from a window: how far it was from what was expected, squared and over the variance of a Poisson count; `usual`
    /// is the dispersion that was expected of it.
    pub(crate) fn learn(&mut self, expected: f64, squared: f64, usual: f64) {
        let residual = squared.min(FAR_SQUARED * usual);
        // Large residuals come with large expectations; they must not drown the rest, nor be drowned.
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
