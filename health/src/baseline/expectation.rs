//! What is expected of a window.

use crate::baseline::basis::Basis;

/// What is expected of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The expected count; of a rate, the expected share (0 to 1).
    pub expected: f64,
    /// How many times the variance of a Poisson (of a rate: binomial) count the variance is; at least 1. It includes how
    /// uncertain the expectation itself is.
    pub dispersion: f64,
    /// By which windows it was learned.
    pub basis: Basis,
    /// How many windows taught it.
    pub used: usize,
}
