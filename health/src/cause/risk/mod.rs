//! Explains the change of a volume by combinations whose leaves all deviate alike, while other leaves deviate only by noise.
//!
//! The search follows RiskLoc (Kalander 2022). The noise is estimated from the direction in which leaves deviate less far. Leaves
//! that deviate further beyond the noise are stronger evidence. A combination is likely to be a cause if its leaves deviate
//! alike. Unlike RiskLoc, the search doesn't divide leaves into normal and abnormal ones, and it compares likelihoods instead of
//! comparing a score with a threshold. Each cause has a price, which grows with the number of alternatives.

pub(crate) mod cube;
pub(crate) mod evidence;
pub(crate) mod noise;
pub(crate) mod points;
pub(crate) mod search;

#[cfg(test)]
mod tests;
