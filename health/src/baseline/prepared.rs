//! A stream as floats, with what is needed of each window many times.

use crate::baseline::stream::Stream;

/// A stream as floats. The powers of 2/3 are those of Anscombe's residuals.
pub(crate) struct Prepared {
    pub(crate) parts: Vec<f64>,
    pub(crate) part_roots: Vec<f64>,
    /// Of a volume, empty: each whole is 1.
    pub(crate) wholes: Vec<f64>,
    pub(crate) whole_roots: Vec<f64>,
    /// Whether the window teaches: it is known, and of a rate its whole is not 0.
    pub(crate) teaches: Vec<bool>,
}

impl Prepared {
    pub(crate) fn new(stream: &Stream<'_>) -> Self {
        let wholes: Vec<f64> = stream
            .wholes
            .unwrap_or_default()
            .iter()
            .map(|&whole| whole as f64)
            .collect();
        let parts: Vec<f64> = stream.counts.iter().map(|&count| count as f64).collect();
        let teaches =
            (0..parts.len()).map(|at| stream.known_at(at).is_some_and(|(_, whole)| whole > 0));
        Self {
            teaches: teaches.collect(),
            part_roots: parts.iter().map(|&part| power_two_thirds(part)).collect(),
            whole_roots: wholes
                .iter()
                .map(|&whole| power_two_thirds(whole))
                .collect(),
            parts,
            wholes,
        }
    }

    pub(crate) fn is_rate(&self) -> bool {
        !self.wholes.is_empty()
    }

    /// The whole of a window and its power of 2/3.
    pub(crate) fn whole(&self, at: usize) -> (f64, f64) {
        if self.is_rate() {
            (self.wholes[at], self.whole_roots[at])
        } else {
            (1.0, 1.0)
        }
    }
}

/// `value` to the power of 2/3.
pub(crate) fn power_two_thirds(value: f64) -> f64 {
    let root = libm::cbrt(value);
    root * root
}
