//! Probabilities and tests, each a pure function that gives a number for every input.

pub(crate) mod deviance;
pub(crate) mod discovery;
mod distribution;
mod fraction;
mod gamma;
pub(crate) mod mass;
pub(crate) mod normal;
mod outward;
pub(crate) mod tails;
