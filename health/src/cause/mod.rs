//! Finds the combinations of dimension values that explain a change.

pub(crate) mod candidates;
pub(crate) mod chance;
pub(crate) mod counted;
pub(crate) mod explain;
pub(crate) mod explanation;
pub(crate) mod leaves;
pub(crate) mod rates;
pub(crate) mod risk;
pub(crate) mod weighing;
