//! What explains the change of a volume: combinations whose leaves all deviate alike, where others deviate by noise only.
//!
//! The idea is that of RiskLoc (Kalander 2022): the side that few leaves deviate to shows the noise, leaves are weighed by how
//! far they deviate beyond it, and a combination is good if its leaves deviate alike. Instead of cuts and thresholds it
//! compares likelihoods, less the price of naming a combination among all that could have been named.
pub(crate) mod bulk;
pub(crate) mod cube;
pub(crate) mod evidence;
pub(crate) mod keys;
pub(crate) mod noise;
pub(crate) mod points;
pub(crate) mod search;
#[cfg(test)]
mod tests;
