//! Probabilities and tests, each a pure function that gives a number for every input.

pub(crate) mod distribution;
pub(crate) mod mass;
pub(crate) mod tails;
