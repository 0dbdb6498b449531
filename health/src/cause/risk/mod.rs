//! What explains the change of a volume: combinations whose leaves all deviate alike, while other leaves deviate by
//! noise only.
//!
//! This follows the idea of RiskLoc (Kalander 2022): the side to which fewer leaves deviate shows the noise, leaves are
//! weighed by how far they deviate beyond the noise, and a combination is good if its leaves deviate alike. Instead of
//! cuts and thresholds, this search compares likelihoods. Each combination that it names has a price, which grows with
//! the number of alternatives.

pub(crate) mod cube;
pub(crate) mod evidence;
pub(crate) mod noise;
pub(crate) mod points;
pub(crate) mod search;

#[cfg(test)]
mod tests;
