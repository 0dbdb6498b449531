//! Explains the change of a volume by combinations whose leaves all deviate alike, while other leaves deviate only by noise.
//!
//! The search follows the idea of RiskLoc (Kalander 2022). The side to which fewer leaves deviate shows the noise. Leaves
//! are weighed by how far they deviate beyond the noise. A combination is good if its leaves deviate alike. Instead of
//! cuts and thresholds, the search compares likelihoods. Each cause has a price, which grows with the number of
//! alternatives.

pub(crate) mod cube;
pub(crate) mod evidence;
pub(crate) mod noise;
pub(crate) mod points;
pub(crate) mod search;

#[cfg(test)]
mod tests;
