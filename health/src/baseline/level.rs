//! What is expected of a window.

use crate::baseline::basis::Basis;
use crate::baseline::fit::fit;
use crate::baseline::reference::references;
use crate::baseline::season::Season;
use crate::baseline::stream::Stream;

/// What is expected of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The expected count; of a rate, the expected share (0 to 1).
    pub expected: f64,
    /// How many times the variance of a Poisson (of a rate: binomial) count the variance is; at least 1.
    pub dispersion: f64,
    /// By which windows it was learned.
    pub basis: Basis,
    /// How many windows taught it.
    pub used: usize,
}

/// What is expected of the window `at`, by the windows before it. None where there is not enough history for any rule.
#[must_use]
pub fn level(stream: &Stream, at: usize, season: &Season) -> Option<Level> {
    let (basis, observations) = references(stream, at, season)?;
    let (rate, dispersion) = fit(&observations);
    let expected = if stream.wholes.is_some() {
        rate.min(1.0)
    } else {
        rate
    };
    Some(Level {
        expected,
        dispersion,
        basis,
        used: observations.len(),
    })
}
