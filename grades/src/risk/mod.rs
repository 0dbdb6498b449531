//! Evaluates explanations of changed volumes, on files like RiskLoc's synthetic set S.
pub(crate) mod case;
pub(crate) mod files;
pub(crate) mod generated;
pub(crate) mod random;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod speed;
