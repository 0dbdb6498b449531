//! Probabilities of counts. Each function is pure and returns a number for every input.

pub(crate) mod distribution;
pub(crate) mod mass;
pub(crate) mod tails;
