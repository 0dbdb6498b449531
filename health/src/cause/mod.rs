//! Which few combinations of dimension values explain a change.
pub(crate) mod cuboid;
pub(crate) mod element;
pub(crate) mod explain;
pub(crate) mod explanation;
pub(crate) mod leaves;
pub(crate) mod options;
pub(crate) mod risk;
pub(crate) mod scan;
pub(crate) mod sentence;
