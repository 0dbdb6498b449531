//! Probabilities and tests. Each is a pure function that returns a number for every input.

pub(crate) mod distribution;
pub(crate) mod mass;
pub(crate) mod tails;
