//! Evaluates how often the known causes of incidents are found.
pub(crate) mod cases;
pub(crate) mod generated;
pub(crate) mod marks;
pub(crate) mod methods;
pub(crate) mod plain;
pub(crate) mod report;
