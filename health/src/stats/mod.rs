//! Probabilities and tests, each a pure function that gives a number for every input.

pub(crate) mod deviance;
pub(crate) mod discovery;
pub(crate) mod mass;
pub(crate) mod normal;
pub(crate) mod tails;
