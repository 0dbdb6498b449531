//! Single streams: the scenarios of Noufaily et al. 2013, next to R's `surveillance::farringtonFlexible`.
mod farrington;
mod random;
pub(crate) mod report;
mod restated;
mod score;
mod simulate;
